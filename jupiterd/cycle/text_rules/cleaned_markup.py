"""A document in a markup as it is trained on: prose and explained code, not what leads elsewhere.

Owns what goes: front matter, navigation, tables of links, records of terminals, examples that stand
there twice, headings above nothing. All of it is Markdown afterwards, whatever it was before.
Doesn't know which documents are worth training on.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from jupiterd.cycle.text_rules.blocks import Block, BlockKind
from jupiterd.cycle.text_rules.document_kind import DocumentForm
from jupiterd.cycle.text_rules.inline_marks import linked, without_links
from jupiterd.cycle.text_rules.markup_blocks import document_of
from jupiterd.cycle.text_rules.terminal_records import without_record

MAX_LINKED = 0.8
"""A line more of whose letters are links is navigation."""

MAX_NAVIGATION_CHARS = 400
"""A longer one says something, too."""

MAX_NOTE_CELLS, MIN_NOTE_WORDS = 3, 8
"""A table of so few cells, one of which has so many words, is a note with a frame around it."""

MIN_REPEATED_WORDS = 4
"""A shorter paragraph is a label, which says where one is, and may come again."""

MAX_REPEATED_CODE, MIN_REPEATED_LINES = 0.8, 8
"""So much of a longer example stood in those before: it is the same one, grown by a line."""

_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+")
_NUMBER = re.compile(r"^[ \t]*(?:\d{1,4}\.)+[ \t]*")
_TABLE_RULE = re.compile(r"^[ \t|:+-]+$")
_CELL_LINK = re.compile(r"^[ \t]*!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])[ \t]*$")


def cleaned_markup(text: str, form: DocumentForm) -> str:
    """Return a text as Markdown, cleaned; as it was where it has no markup, or nothing is left."""
    if not form.markup:
        return text
    document = document_of(text, form)
    blocks = [left for block in document.blocks for left in _cleaned(block, document.defined)]
    fresh = _without_repeated_code(_without_repeated_text(_without_contents(blocks)))
    found = written(_without_empty_sections(fresh))
    end = "\n" if text.endswith("\n") else ""
    return f"{found}{end}" if found else text


def _cleaned(block: Block, defined: frozenset[str]) -> list[Block]:
    """Return what is left of a block."""
    if block.kind is BlockKind.CODE:
        return without_record(block)
    if block.kind is BlockKind.TABLE:
        return _cleaned_table(block, defined)
    if block.kind is not BlockKind.HEADING and _is_navigation(block.lines):
        return []
    lines = [without_links(line, defined) for line in block.lines]
    kept = tuple(line for line in lines if _WORD.search(line))
    return [replace(block, lines=kept)] if kept else []


def _is_navigation(lines: Sequence[str]) -> bool:
    inside, total = map(sum, zip(*map(linked, lines), strict=True))
    return inside > MAX_LINKED * total and total < MAX_NAVIGATION_CHARS


def _cleaned_table(block: Block, defined: frozenset[str]) -> list[Block]:
    """Leave a table out that is HTML, or one of links alone; a note set as one is text."""
    head = "".join(block.lines[:1]).lstrip()
    if head.startswith("<") or "|" not in head:
        return []
    rows = [line for line in block.lines if not _TABLE_RULE.match(line)]
    cells = [cell.strip() for row in rows for cell in row.strip("| ").split("|") if cell.strip()]
    if len(cells) <= MAX_NOTE_CELLS and any(len(one.split()) >= MIN_NOTE_WORDS for one in cells):
        return [
            replace(block, kind=BlockKind.PARAGRAPH, lines=(without_links(cell, defined),))
            for cell in cells
        ]
    links = sum(map(bool, map(_CELL_LINK.match, cells)))
    if not cells or 2 * links >= len(cells):
        return []
    return [replace(block, lines=tuple(without_links(line, defined) for line in block.lines))]


def _without_contents(blocks: Sequence[Block]) -> list[Block]:
    """Leave out lists of what the page's own headings say anyway."""
    titles = {_bare(" ".join(one.lines)) for one in blocks if one.kind is BlockKind.HEADING}
    return [
        block
        for block in blocks
        if block.kind is not BlockKind.ITEM or _bare(" ".join(block.lines)) not in titles
    ]


def _bare(title: str) -> str:
    """Return a title's words alone, without the number that may stand before them."""
    return " ".join(_WORDS.findall(_NUMBER.sub("", title).lower()))


def _without_repeated_text(blocks: Sequence[Block]) -> list[Block]:
    """Leave out paragraphs that stood there before: notes that a site puts below each example."""
    seen: set[tuple[str, ...]] = set()
    kept: list[Block] = []
    for block in blocks:
        is_text = block.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM)
        is_long = is_text and sum(len(line.split()) for line in block.lines) >= MIN_REPEATED_WORDS
        if not (is_long and block.lines in seen):
            kept.append(block)
        if is_long:
            seen.add(block.lines)
    return kept


def _without_repeated_code(blocks: Sequence[Block]) -> list[Block]:
    seen: set[str] = set()
    kept: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.CODE:
            lines = [line.strip() for line in block.lines if line.strip()]
            again = sum(line in seen for line in lines)
            seen.update(lines)
            if len(lines) >= MIN_REPEATED_LINES and again > MAX_REPEATED_CODE * len(lines):
                continue
        kept.append(block)
    return kept


def _without_empty_sections(blocks: Sequence[Block]) -> list[Block]:
    """Leave out headings that nothing but other sections, or the end, follows."""
    kept: list[Block] = []
    for block in reversed(blocks):
        if block.kind is BlockKind.HEADING:
            below = kept[-1] if kept else None
            is_next = below is not None and below.kind is BlockKind.HEADING
            if below is None or (is_next and below.level <= block.level):
                continue
        kept.append(block)
    return kept[::-1]


def written(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown."""
    parts: list[str] = []
    before: Block | None = None
    for block in blocks:
        is_list = block.kind is BlockKind.ITEM and before is not None
        is_tight = is_list and before is not None and before.kind is BlockKind.ITEM
        if before is not None:
            parts.append("\n" if is_tight else "\n\n")
        parts.append(_lines_of(block))
        before = block
    return "".join(parts)


def _lines_of(block: Block) -> str:
    lines = list(block.lines)
    if block.kind is BlockKind.HEADING:
        lines = [f"{'#' * block.level} {lines[0]}"]
    elif block.kind is BlockKind.CODE:
        fence = "````" if any(line.startswith("```") for line in lines) else "```"
        lines = [f"{fence}{block.language}", *lines, fence]
    elif block.kind is not BlockKind.TABLE:
        lines = [f"{line}  " for line in lines[:-1]] + lines[-1:]  # a forced break stays one
    prefixes = [block.first, *[block.rest] * (len(lines) - 1)]
    return "\n".join(
        f"{prefix}{line}" if line else prefix.rstrip()
        for prefix, line in zip(prefixes, lines, strict=True)
    )
