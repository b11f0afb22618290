"""Lists of which one row is chosen.

Pure. Owns filtering, and where the choice goes when rows come, go or change places. Doesn't know
what the rows say, or any widget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone
from jupiter_tui.model.scene import Scene

MARK, NO_MARK = "> ", "  "
"""Before the chosen row, and before every other line: the choice is never shown by colour alone."""


class Row(NamedTuple):
    """One row, by a key that stays the same while its content changes."""

    key: str
    line: Line


@dataclass(frozen=True)
class Listing:
    """Rows to choose from, between lines that can't be chosen."""

    head: Lines
    rows: tuple[Row, ...]
    foot: Lines = ()


@dataclass(frozen=True)
class Choice:
    """How somebody wants to see a list."""

    filter: str = ""
    sort: str = ""
    """One of the orders that the list offers; empty: its own."""
    selected: str | None = None
    """The key of the chosen row."""


ListDrawing = Callable[[Scene, Choice, int], Listing]
"""Takes a scene, a choice and a width in characters."""


def filtered(listing: Listing, words: str) -> Listing:
    """Return the listing with the rows in which every word occurs, in any case."""
    wanted = words.lower().split()
    rows = [row for row in listing.rows if all(word in _text(row.line) for word in wanted)]
    return Listing(listing.head, tuple(rows), listing.foot)


def selected_place(rows: Sequence[Row], choice: Choice, last_place: int = 0) -> int | None:
    """Return where the chosen row is; one that has gone leaves the choice at its place."""
    if not rows:
        return None
    for place, row in enumerate(rows):
        if row.key == choice.selected:
            return place
    return min(max(last_place, 0), len(rows) - 1)


def drawn(listing: Listing, place: int | None) -> Lines:
    """Return the lines, with a mark before the chosen row."""
    rows = [
        (Cell(MARK, Tone.STRONG) if at == place else Cell(NO_MARK), *row.line)
        for at, row in enumerate(listing.rows)
    ]
    return (*map(_indented, listing.head), *rows, *map(_indented, listing.foot))


def _indented(line: Line) -> Line:
    return (Cell(NO_MARK), *line)


def _text(line: Line) -> str:
    return "".join(cell.text for cell in line).lower()
