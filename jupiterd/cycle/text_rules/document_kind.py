"""What kind of document a text is: prose, documentation in a markup, code, a notebook, data.

Owns the kinds, the endings of names that stand for each, and what content tells where a name
doesn't. Doesn't know what is asked of each kind, or how a file is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self

from jupiterd.cycle.text_rules.markup.markup_signs import markup_of
from jupiterd.cycle.text_rules.name_endings import (
    CODE_NAMES,
    ENDINGS_OF_CODE,
    ENDINGS_OF_KIND,
    ENDINGS_OF_MARKUP,
    INTERPRETERS,
)


class DocumentKind(StrEnum):
    """What a document is, as far as rules differ."""

    PROSE = "prose"
    """Plain text."""
    DOCUMENTATION = "documentation"
    """Text with marks for headings, lists and examples: Markdown, reStructuredText and so on."""
    WEB = "web"
    """What was on a web page; its reader writes Markdown."""
    CODE = "code"
    NOTEBOOK = "notebook"
    """Text and code in turn; its reader writes Markdown."""
    OFFICE = "office"
    """Word processor files, PDF, e-books; their readers write Markdown."""
    TABLE = "table"
    """Rows of cells."""
    DATA = "data"
    """Settings, records and drawings that programs read: JSON, YAML, XML, SVG."""


MARKDOWN: Final = "markdown"
RST: Final = "rst"
ASCIIDOC: Final = "asciidoc"
WIKI: Final = "wiki"


@dataclass(frozen=True)
class DocumentForm:
    """A kind, and the language that it is written in."""

    kind: DocumentKind
    syntax: str = ""
    """Of code its programming language, as in `code:python`; of documentation its markup."""

    @property
    def markup(self) -> str:
        """Return the markup of the text, `markdown` and the like; empty where it has none."""
        marked = (
            DocumentKind.DOCUMENTATION,
            DocumentKind.WEB,
            DocumentKind.NOTEBOOK,
            DocumentKind.OFFICE,
        )
        return self.syntax or MARKDOWN if self.kind in marked else ""

    def __str__(self) -> str:
        """Return it as samples carry it: `code:python`, `documentation:rst`, `prose`."""
        return f"{self.kind}:{self.syntax}" if self.syntax else str(self.kind)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `str` gave; prose where a newer version named a kind that isn't known."""
        kind, _, syntax = text.partition(":")
        known = kind in frozenset(DocumentKind)
        return cls(DocumentKind(kind), syntax) if known else cls(DocumentKind.PROSE)


CODE_LANGUAGES: Final = frozenset(ENDINGS_OF_CODE)
"""The programming languages that are told by a name, as they stand after `code:`."""

_PACKED: Final = frozenset({"gz", "bz2", "xz", "zst"})
_PLAIN: Final = "txt"
"""May hold anything, such as the sources of documentation: `intro.rst.txt`."""


def _forms() -> Mapping[str, DocumentForm]:
    found: dict[str, DocumentForm] = {}
    for kind, endings in ENDINGS_OF_KIND.items():
        found |= dict.fromkeys(endings.split(), DocumentForm(DocumentKind(kind)))
    for markup, endings in ENDINGS_OF_MARKUP.items():
        form = DocumentForm(DocumentKind.DOCUMENTATION, markup)
        found |= dict.fromkeys(endings.split(), form)
    for language, endings in ENDINGS_OF_CODE.items():
        found |= dict.fromkeys(endings.split(), DocumentForm(DocumentKind.CODE, language))
    return MappingProxyType(found)


_FORMS: Final = _forms()
_WEB_ADDRESS: Final = re.compile(r"https?://[^/?#]*([^?#]*)", re.IGNORECASE)
_SHEBANG: Final = re.compile(r"#![^\n]*?([A-Za-z]+)[\d.]*(?:[ \t]+-[^\n]*)?(?:\n|$)")


def document_kind(name: str, text: str) -> DocumentForm:
    """Return what a document is.

    Args:
        name: its file name, path or address; it decides wherever it can.
        text: as it was read; its beginning decides where the name doesn't.
    """
    address = _WEB_ADDRESS.match(name)
    path = address[1] if address else name
    return (
        _form_of_name(path.rpartition("/")[2].lower())
        or (DocumentForm(DocumentKind.WEB) if address else None)
        or _form_of_content(text)
    )


def _form_of_name(last: str) -> DocumentForm | None:
    if language := CODE_NAMES.get(last):
        return DocumentForm(DocumentKind.CODE, language)
    endings = last.split(".")[1:]
    while endings and endings[-1] in _PACKED:
        endings.pop()
    if len(endings) > 1 and endings[-1] == _PLAIN:
        endings.pop()
    return _FORMS.get(endings[-1]) if endings else None


def _form_of_content(text: str) -> DocumentForm:
    if begun := _SHEBANG.match(text):
        program = begun[1].lower()
        return DocumentForm(DocumentKind.CODE, INTERPRETERS.get(program, program))
    markup = markup_of(text)
    return DocumentForm(DocumentKind.DOCUMENTATION if markup else DocumentKind.PROSE, markup)
