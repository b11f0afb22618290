"""A document in a markup as it is trained on: prose and explained code, not what leads elsewhere.

Owns what goes: front matter, navigation, tables of links, records of terminals, examples that stand
there twice, headings above nothing. All of it is Markdown afterwards, whatever it was before.
Doesn't know which documents are worth training on.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.markup.blocks import Block, BlockKind
from jupiterd.cycle.text_rules.markup.inline_marks import linked, without_links
from jupiterd.cycle.text_rules.markup.markup_blocks import document_of
from jupiterd.cycle.text_rules.terminal_records import without_record

MAX_LINKED = 0.8
"""A line more of whose letters are links is navigation."""

MAX_NAVIGATION_CHARS = 400
"""A longer one says something, too."""

MAX_NOTE_CELLS, MIN_NOTE_WORDS = 3, 8
"""A table of so few cells, one of which has so many words, is a note with a frame around it."""

MAX_NAVIGATION_CELLS = 6
"""A table at either end of a page with so few, and empty ones among them, leads to other pages."""

MAX_LAST_NAMES = 2
"""The page before and the one behind."""

MIN_REPEATED_WORDS = 4
"""A shorter paragraph is a label, which says where one is, and may come again."""

MAX_REPEATED_CODE, MIN_REPEATED_LINES = 0.8, 8
"""So much of a longer example stood in those before: it is the same one, grown by a line."""

_TEXT = (BlockKind.ITEM, BlockKind.PARAGRAPH)
_SENTENCE_END = re.compile(r"[.!?:\u2026\u3002\uff01\uff1f][*_\"'\u2019\u201d\u00bb)\]]*$")
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+")
_NUMBER = re.compile(r"^[ \t]*(?:\d{1,4}\.)+[ \t]*")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_TABLE_RULE = re.compile(r"^[ \t|:+-]+$")
_CELL_LINK = re.compile(r"^[ \t]*!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])[ \t]*$")


def cleaned_markup(text: str, form: DocumentForm) -> str:
    """Return a text as Markdown, cleaned; as it was where it has no markup, or nothing is left."""
    if not form.markup:
        return text
    document = document_of(text, form)
    blocks = [left for block in document.blocks for left in _cleaned(block, document.defined)]
    own = _without_contents(_without_layout_at_ends(blocks))
    own = _without_frame(own) if form.kind is DocumentKind.WEB else own
    fresh = _without_repeated_code(_without_repeated_text(own))
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
    remaining = tuple(line for line in lines if _WORD.search(line))
    return [replace(block, lines=remaining)] if remaining else []


def _is_navigation(lines: Sequence[str]) -> bool:
    inside, total = map(sum, zip(*map(linked, lines), strict=True))
    return inside > MAX_LINKED * total and total < MAX_NAVIGATION_CHARS


def _cleaned_table(block: Block, defined: frozenset[str]) -> list[Block]:
    """Leave a table out that is HTML, or one of links alone; a note set as one is text."""
    head = "".join(block.lines[:1]).lstrip()
    if head.startswith("<") or "|" not in head:
        return []
    rows = [line for line in block.lines if not _TABLE_RULE.match(line)]
    cells = _filled_cells(rows)
    is_note = len(cells) <= MAX_NOTE_CELLS or _is_one_column(rows)
    if is_note and any(len(one.split()) >= MIN_NOTE_WORDS for one in cells):
        return [
            replace(block, kind=BlockKind.PARAGRAPH, lines=(without_links(cell, defined),))
            for cell in cells
        ]
    links = sum(map(bool, map(_CELL_LINK.match, cells)))
    if not cells or 2 * links >= len(cells):
        return []
    return [replace(block, lines=tuple(without_links(line, defined) for line in block.lines))]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def _filled_cells(rows: Iterable[str]) -> list[str]:
    return [cell for row in rows for cell in _cells(row) if cell]


def _is_one_column(rows: Sequence[str]) -> bool:
    """Say whether one column alone has words: questions and answers, or steps, with their numbers.

    That is text which a table lays out.
    """
    lettered = {
        number for row in rows for number, cell in enumerate(_cells(row)) if _LETTERS.search(cell)
    }
    return len(lettered) == 1


def _without_layout_at_ends(blocks: Sequence[Block]) -> list[Block]:
    """Leave out small tables at either end, some of whose cells are empty: links to other pages."""
    first = 1 if blocks and _is_layout(blocks[0]) else 0
    end = -1 if len(blocks) > first and _is_layout(blocks[-1]) else len(blocks)
    return list(blocks[first:end])


def _without_frame(blocks: Sequence[Block]) -> list[Block]:
    """Leave out what stands above a web page's first heading and says nothing, at its end too.

    That is the names of pages before, behind and above it.
    """
    headings = (number for number, one in enumerate(blocks) if one.kind is BlockKind.HEADING)
    above = blocks[: next(headings, 0)]
    if not all(map(_is_name, above)):
        above = ()
    names = {_bare(" ".join(block.lines)) for block in above}
    end = len(blocks)
    while end > len(above) and _is_name(blocks[end - 1]):
        if _bare(" ".join(blocks[end - 1].lines)) not in names:
            break
        end -= 1
    return _without_last_names(blocks[len(above) : end])


def _without_last_names(blocks: Sequence[Block]) -> list[Block]:
    """Leave out a list of one or two names at the end that nothing leads to: pages near by."""
    end = len(blocks)
    while end and blocks[end - 1].kind is BlockKind.ITEM and _is_name(blocks[end - 1]):
        end -= 1
    before = " ".join(blocks[end - 1].lines) if end else ":"
    is_list = before.endswith(":") or blocks[end - 1].kind in (BlockKind.HEADING, BlockKind.ITEM)
    return list(blocks if is_list or len(blocks) - end > MAX_LAST_NAMES else blocks[:end])


def _is_name(block: Block) -> bool:
    """Say whether it is text too short to say anything."""
    text = " ".join(block.lines)
    is_short = len(text.split()) < MIN_NOTE_WORDS and not _SENTENCE_END.search(text)
    return block.kind in _TEXT and is_short


def _is_layout(block: Block) -> bool:
    if block.kind is not BlockKind.TABLE:
        return False
    rows = [line for line in block.lines if not _TABLE_RULE.match(line)]
    cells = _filled_cells(rows)
    is_filled = len(cells) == sum(map(len, map(_cells, rows)))
    is_short = all(len(cell.split()) < MIN_NOTE_WORDS for cell in cells)
    return not is_filled and is_short and len(cells) <= MAX_NAVIGATION_CELLS


def _without_contents(blocks: Sequence[Block]) -> list[Block]:
    """Leave out lists of what the page's own headings say anyway, and its title above a heading."""
    titles = {_bare(" ".join(one.lines)) for one in blocks if one.kind is BlockKind.HEADING}
    return [
        block
        for block in blocks
        if block.kind not in _TEXT or _bare(" ".join(block.lines)) not in titles
    ]


def _bare(title: str) -> str:
    """Return a title's words alone, without the number that may stand before them."""
    return " ".join(_WORDS.findall(_NUMBER.sub("", title).lower()))


def _without_repeated_text(blocks: Sequence[Block]) -> list[Block]:
    """Leave out paragraphs that stood there before: notes that a site puts below each example."""
    seen: set[str] = set()
    remaining: list[Block] = []
    for block in blocks:
        words = _bare(" ".join(block.lines)) if block.kind in _TEXT else ""
        is_long = words.count(" ") >= MIN_REPEATED_WORDS - 1
        if not (is_long and words in seen):
            remaining.append(block)
        if is_long:
            seen.add(words)
    return remaining


def _without_repeated_code(blocks: Sequence[Block]) -> list[Block]:
    seen: set[str] = set()
    remaining: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.CODE:
            lines = [line.strip() for line in block.lines if line.strip()]
            again = sum(line in seen for line in lines)
            seen.update(lines)
            if len(lines) >= MIN_REPEATED_LINES and again > MAX_REPEATED_CODE * len(lines):
                continue
        remaining.append(block)
    return remaining


def _without_empty_sections(blocks: Sequence[Block]) -> list[Block]:
    """Leave out headings that nothing but other sections, or the end, follows."""
    remaining: list[Block] = []
    for block in reversed(blocks):
        if block.kind is BlockKind.HEADING:
            below = remaining[-1] if remaining else None
            is_next = below is not None and below.kind is BlockKind.HEADING
            if below is None or (is_next and below.level <= block.level):
                continue
        remaining.append(block)
    return remaining[::-1]


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
