"""A document as rules about prose judge it: its sentences, without marks, code and tables.

Owns what is left of each block, and how much of it explains something. Doesn't know rules.
"""

from dataclasses import dataclass

from jupiterd.cycle.base.unsegmented_scripts import LETTERS_PER_WORD, estimated_words
from jupiterd.cycle.text_rules.document_kind import DocumentForm
from jupiterd.cycle.text_rules.markup.blocks import Block, BlockKind
from jupiterd.cycle.text_rules.markup.inline_marks import (
    is_code_alone,
    without_links,
    without_marks,
)
from jupiterd.cycle.text_rules.markup.markup_blocks import document_of

MIN_EXPLAINING_WORDS = 4
"""A line of fewer is a name, not an explanation."""


@dataclass(frozen=True)
class Rendering:
    """A document without its marks, and how much there is of what."""

    text: str
    """One line for each paragraph and list item; headings and other labels, such as those of notes
    and the names of files above examples, once each: they say where one is, not the same again."""
    explained_bytes: int
    """In lines that explain something, headings not counted."""
    code_bytes: int


def plain_rendering(text: str, form: DocumentForm) -> str:
    """Return a document's prose alone; the text itself where it has no markup."""
    return rendering(text, form).text


def rendering(text: str, form: DocumentForm, language: str = "") -> Rendering:
    """Return a document's prose, and how much of it and of code there is.

    Args:
        text: the document.
        form: what it is; without a markup it is prose from end to end.
        language: natural, such as `en`; some are written without spaces between words.
    """
    if not form.markup:
        return Rendering(text, len(text.encode("utf-8", "replace")), 0)
    document = document_of(text, form)
    lines: list[str] = []
    labels: set[str] = set()
    explained = code = 0
    for block in document.blocks:
        if block.kind is BlockKind.CODE:
            code += sum(len(line) + 1 for line in block.lines)
        for line in _plain(block, document.defined):
            size = 0 if block.kind is BlockKind.HEADING else _explaining_bytes(line, language)
            if line in labels:
                continue
            explained += size
            lines.append(line)
            if not size:
                labels.add(line)
    return Rendering("\n".join(lines), explained, code)


def _plain(block: Block, defined: frozenset[str]) -> list[str]:
    if block.kind in (BlockKind.TABLE, BlockKind.CODE):
        return []
    lines = [without_links(line, defined) for line in block.lines]
    words = [without_marks(line) for line in lines if not is_code_alone(line)]
    return [line for line in words if line]


def _explaining_bytes(line: str, language: str) -> int:
    is_spaced = language not in LETTERS_PER_WORD
    words = len(line.split()) if is_spaced else estimated_words(line, language)
    return len(line.encode("utf-8", "replace")) + 1 if words >= MIN_EXPLAINING_WORDS else 0
