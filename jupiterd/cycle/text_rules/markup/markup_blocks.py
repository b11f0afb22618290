"""Any document in a markup as blocks: the front matter aside, and the right reader for the rest.

Owns the choice of the reader, and what front matter is. Doesn't know the markups themselves.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jupiterd.cycle.text_rules.document_kind import (
    ASCIIDOC,
    MARKDOWN,
    RST,
    WIKI,
    DocumentForm,
    DocumentKind,
)
from jupiterd.cycle.text_rules.markup.asciidoc_blocks import asciidoc_blocks
from jupiterd.cycle.text_rules.markup.blocks import Block, BlockKind, heading
from jupiterd.cycle.text_rules.markup.markdown_blocks import lines_of, markdown_blocks
from jupiterd.cycle.text_rules.markup.rst_blocks import rst_blocks
from jupiterd.cycle.text_rules.markup.wiki_blocks import wiki_blocks

_FRONT_MATTER = re.compile(
    r"\s*(---|\+\+\+)[ \t]*\n(.{0,50000}?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL
)
_KEY = re.compile(r"^[\w.-]+[ \t]*[:=]", re.MULTILINE)
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_LISTED = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_DEFINED = re.compile(r"^[ \t]{0,8}\[([^\]\n]{1,300})\]:[ \t]*\S", re.MULTILINE)


@dataclass(frozen=True)
class MarkupDocument:
    """A document that was read."""

    blocks: tuple[Block, ...]
    defined: frozenset[str] = frozenset()
    """Names of the link targets that it defines, in lower case."""


def document_of(text: str, form: DocumentForm) -> MarkupDocument:
    """Return what a text consists of, read as its markup says."""
    title, body = _without_front_matter(text)
    read = _READERS.get(form.markup, markdown_blocks)
    lines = lines_of(body)
    blocks = read(_flush(lines) if form.kind is DocumentKind.OFFICE else lines)
    has_title = bool(blocks) and blocks[0].kind is BlockKind.HEADING and blocks[0].level == 1
    if title and not has_title:
        blocks = [*heading(title, 1), *blocks]
    return MarkupDocument(tuple(blocks), frozenset(map(str.lower, _DEFINED.findall(body))))


def _flush(lines: list[str]) -> list[str]:
    """Return lines without their indentation, but for lists: on a printed page it is no code."""
    paragraph: list[str] = []
    is_example = False
    for line in lines:
        text = line.lstrip(" ")
        is_fence = text.startswith(("```", "~~~"))
        is_example ^= is_fence
        paragraph.append(line if is_example or is_fence or _LISTED.match(text) else text)
    return paragraph


def _without_front_matter(text: str) -> tuple[str, str]:
    """Return the title that front matter gives, and the text below it."""
    found = _FRONT_MATTER.match(text)
    if not found or not found[2] or not _KEY.search(found[2]):
        return "", text
    title = _TITLE.search(found[2])
    return (title[1] if title else ""), text[found.end() :]


_READERS: Mapping[str, Callable[[list[str]], list[Block]]] = MappingProxyType(
    {
        MARKDOWN: markdown_blocks,
        RST: rst_blocks,
        ASCIIDOC: asciidoc_blocks,
        WIKI: wiki_blocks,
    }
)
