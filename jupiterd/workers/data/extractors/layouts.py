"""What the lines of a text mean, by how it was read and what kind of document it is.

Owns that choice. Doesn't know what is done with lines (`cycle.text_rules.text_form`).
"""

from collections.abc import Mapping

from jupiterd.cycle.text_rules.document_kind import (
    ASCIIDOC,
    MARKDOWN,
    RST,
    DocumentForm,
    DocumentKind,
    document_kind,
)
from jupiterd.cycle.text_rules.text_form import LineMeaning

_OF_FORMS: Mapping[str, LineMeaning] = {
    "pdf": LineMeaning.PDF,
    "notebook": LineMeaning.MARKDOWN,
    "tex": LineMeaning.MARKDOWN,
}
"""Other readers write a paragraph on each line."""

_OF_MARKUP: Mapping[str, LineMeaning] = {
    MARKDOWN: LineMeaning.MARKDOWN,
    RST: LineMeaning.RST,
    ASCIIDOC: LineMeaning.ASCIIDOC,
}


def layout_of(form: str, name: str, text: str) -> LineMeaning:
    """Return what the lines of a text mean.

    Args:
        form: how it was read, such as `pdf`.
        name: its file's name, or its address.
        text: as it was read.
    """
    if form == "man":
        return LineMeaning.MARKDOWN if text.startswith("# ") else layout_of("text", name, text)
    if form != "text":
        return _OF_FORMS.get(form, LineMeaning.PARAGRAPHS)
    return layout_of_kind(document_kind(name, text))


def layout_of_kind(found: DocumentForm) -> LineMeaning:
    """Return what the lines of a text of this kind mean, which no reader has changed."""
    if found.kind is DocumentKind.PROSE:
        return LineMeaning.PLAIN
    if found.kind is DocumentKind.DOCUMENTATION:
        return _OF_MARKUP.get(found.syntax, LineMeaning.PARAGRAPHS)
    return LineMeaning.VERBATIM
