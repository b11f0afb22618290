"""What a document in a markup is made of: headings, paragraphs, list items, code and tables.

Owns the form into which every markup is read, and what stands before a block inside lists and
quotes. Doesn't know any markup.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

MAX_DEPTH = 12
"""Lists and quotes inside each other; what is deeper is read as plain lines."""


class BlockKind(StrEnum):
    """What a block is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    """The first paragraph of a list item."""
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True)
class Block:
    """One piece of a document, without the marks that make it one."""

    kind: BlockKind
    lines: tuple[str, ...]
    """Of a paragraph those that end at a forced break: lines that were only wrapped are joined."""
    level: int = 0
    """Of a heading, 1 for the highest."""
    language: str = ""
    """Of code, as its author named it."""
    first: str = ""
    """What stands before its first line: the marks of the lists and quotes around it."""
    rest: str = ""
    """What stands before its other lines."""


Found = tuple[list[Block], int]
"""Blocks, and the number of the line that follows them."""


def within(blocks: Sequence[Block], first: str, rest: str) -> list[Block]:
    """Return the blocks inside a container that writes these before its lines."""
    return [
        replace(block, first=(rest if number else first) + block.first, rest=rest + block.rest)
        for number, block in enumerate(blocks)
    ]


def as_item(blocks: Sequence[Block], marker: str) -> list[Block]:
    """Return the blocks of one list item, whose marker is such as `- `."""
    found = within(blocks, marker, " " * len(marker))
    if found and found[0].kind is BlockKind.PARAGRAPH:
        found[0] = replace(found[0], kind=BlockKind.ITEM)
    return found


def blocks_between(lines: Sequence[str], read: Callable[[int], Found]) -> list[Block]:
    """Return the blocks of lines that stand between blank ones.

    read: given the place of a line that isn't blank, returns the blocks that begin there, and the
        place after them.
    """
    found: list[Block] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        blocks, at = read(at)
        found += blocks
    return found


def paragraph(lines: Sequence[str]) -> list[Block]:
    """Return a paragraph of these lines, wrapped ones joined; none of blank lines."""
    joined: list[str] = []
    is_forced = True
    for line in lines:
        text = line.strip()
        if not text:
            continue
        if is_forced:
            joined.append(text.removesuffix("\\"))
        else:
            joined[-1] = f"{joined[-1]} {text}".removesuffix("\\")
        is_forced = line.endswith(("  ", "\\"))
    return [Block(BlockKind.PARAGRAPH, tuple(joined))] if joined else []


def heading(text: str, level: int) -> list[Block]:
    """Return a heading; none where it says nothing."""
    return [Block(BlockKind.HEADING, (text.strip(),), level=level)] if text.strip() else []


def code(lines: Sequence[str], language: str = "") -> list[Block]:
    """Return code without blank lines at its ends; none where nothing is left."""
    remaining = list(lines)
    while remaining and not remaining[-1].strip():
        remaining.pop()
    while remaining and not remaining[0].strip():
        remaining.pop(0)
    indent = common_indent(remaining)
    dedented = tuple(line[indent:].rstrip() for line in remaining)
    return [Block(BlockKind.CODE, dedented, language=language)] if remaining else []


def indent_of(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def common_indent(lines: Sequence[str]) -> int:
    """Return how many blanks every line that isn't blank begins with."""
    return min((indent_of(line) for line in lines if line.strip()), default=0)


def indented_below(lines: Sequence[str], at: int, indent: int) -> int:
    """Return the number of the first line from `at` on that is indented by less; blanks count not.

    Blank lines at the end belong to what follows.
    """
    end = at
    for number in range(at, len(lines)):
        if not lines[number].strip():
            continue
        if indent_of(lines[number]) < indent:
            break
        end = number + 1
    return end
