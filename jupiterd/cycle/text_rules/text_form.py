"""The one form that text comes into before any rule counts its lines, whatever it was written with.

Owns what is done for which layout. Doesn't know files, or how text is taken out of them.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from jupiterd.cycle.text_rules.characters import (
    plain_letters,
    plain_line_ends,
    without_trailing_blanks,
)
from jupiterd.cycle.text_rules.hard_wraps import PDF_PAGES, PLAIN_TEXT, unwrapped
from jupiterd.cycle.text_rules.indented_wraps import ASCIIDOC, RST, unwrapped_lines
from jupiterd.cycle.text_rules.markup.markdown_wraps import unwrapped_markdown

_DOT_LEADER = re.compile(r"(?:\. ?){5}[. ]*\S{0,6}$")
"""Dots that lead to the number of a page."""


class LineMeaning(StrEnum):
    """What the lines of a text mean."""

    VERBATIM = "verbatim"
    """Each line is one, as in code and data."""
    PARAGRAPHS = "paragraphs"
    """Each line is a paragraph, a heading or a cell already: a reader has written them."""
    PLAIN = "plain"
    """Paragraphs may be cut into lines of equal width."""
    MARKDOWN = "markdown"
    RST = "rst"
    ASCIIDOC = "asciidoc"
    PDF = "pdf"
    """Lines are those of printed pages."""


def text_form(text: str, layout: LineMeaning) -> str:
    """Return the text with plain line ends and letters, each paragraph of prose on one line."""
    return _FORMS[layout](plain_line_ends(text))


def printed_paragraphs(text: str) -> str:
    """Return the lines of printed pages as paragraphs of Markdown, a blank line between them.

    Rows of a table of contents say nothing that their headings don't: they are left out.
    """
    return "\n\n".join(line for line in text.split("\n") if line and not _DOT_LEADER.search(line))


def _paragraphs(text: str) -> str:
    return without_trailing_blanks(plain_letters(text))


def _plain(text: str) -> str:
    return unwrapped(_paragraphs(text), PLAIN_TEXT)


def _markdown(text: str) -> str:
    return without_trailing_blanks(unwrapped_markdown(plain_letters(text)))


def _rst(text: str) -> str:
    return unwrapped_lines(_paragraphs(text), RST)


def _asciidoc(text: str) -> str:
    return unwrapped_lines(_paragraphs(text), ASCIIDOC)


def _pdf(text: str) -> str:
    return unwrapped(_paragraphs(text), PDF_PAGES)


_FORMS: Mapping[LineMeaning, Callable[[str], str]] = {
    LineMeaning.VERBATIM: without_trailing_blanks,
    LineMeaning.PARAGRAPHS: _paragraphs,
    LineMeaning.PLAIN: _plain,
    LineMeaning.MARKDOWN: _markdown,
    LineMeaning.RST: _rst,
    LineMeaning.ASCIIDOC: _asciidoc,
    LineMeaning.PDF: _pdf,
}
