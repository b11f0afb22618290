"""Lines of text with a tone for each part: what drawings are made of.

Pure. Owns tones and fitting text into a width. Doesn't know colours, or any widget.
"""

import textwrap
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

ELLIPSIS = "…"
LEAST_ROOM = 10
"""Columns that a wrapped text has at least, however narrow the place."""

PLAIN_SIGNS = str.maketrans(
    {"…": "~", "●": "*", "✓": "+", "✗": "x", "▶": ">", "·": ".", "█": "#", "░": "-", "┤": "|",
     "└": "+", "─": "-", "═": "=", "◆": "o", "┊": ":", "│": "|", "⏎": "/"}
)  # fmt: skip
"""What stands for our signs on a terminal that knows ASCII alone."""


class Tone(StrEnum):
    """What a part of a line means to whoever glances at it."""

    NORMAL = "normal"
    STRONG = "strong"
    FAINT = "faint"
    GOOD = "good"
    NOTE = "note"
    WARN = "warn"
    BAD = "bad"


class Cell(NamedTuple):
    """A piece of text in one tone."""

    text: str
    tone: Tone = Tone.NORMAL


Line = tuple[Cell, ...]
Lines = tuple[Line, ...]


def line(text: str, tone: Tone = Tone.NORMAL) -> Line:
    """Return a line in one tone."""
    return (Cell(text, tone),)


def fitted(text: str, width: int, *, is_right: bool = False) -> str:
    """Return the text in exactly `width` columns of a terminal: cut, or filled up with blanks."""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ELLIPSIS if width > 0 else ""
    blanks = " " * (width - length)
    return blanks + text if is_right else text + blanks


def wrapped(text: str, width: int, further: str = "") -> list[str]:
    """Return a text in lines of at most `width`; `further` stands before all but the first."""
    indent = text[: len(text) - len(text.lstrip())]
    room = max(width, len(indent + further) + LEAST_ROOM)
    return textwrap.wrap(text, room, subsequent_indent=indent + further) or [""]


def width_of(cells: Line) -> int:
    """Return how many columns of a terminal a line takes."""
    return sum(cell_len(cell.text) for cell in cells)


def in_ascii(text: str) -> str:
    """Return the text in ASCII alone; what has no likeness there becomes a question mark."""
    return text.translate(PLAIN_SIGNS).encode("ascii", "replace").decode("ascii")
