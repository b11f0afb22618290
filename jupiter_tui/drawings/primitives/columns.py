"""Tables whose less important columns are dropped when the terminal is narrow.

Pure. Owns which columns are shown and how wide they are: gaps shrink before a column is dropped,
and in lists the columns that are empty in every row are dropped first. Doesn't know their content.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, fitted
from jupiter_tui.drawings.primitives.listing import Listing
from jupiter_tui.drawings.primitives.listing import Row as ListRow
from jupiterd.formats import MISSING

GAP, NARROW_GAP = 2, 1


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    key: str
    """Where its cells are found in a row."""
    title: str
    width: int
    """What it needs, in columns of the terminal."""
    priority: int
    """The column with the highest number is dropped first."""
    is_right: bool = False
    grows: bool = False
    """Takes a share of the room that is left over."""


Row = Mapping[str, Cell]


def visible(columns: Sequence[Column], width: int, silent: Collection[str] = ()) -> list[Column]:
    """Return the columns that fit side by side; the most important one always stays.

    Args:
        columns: all that there are.
        width: what room there is.
        silent: keys of empty columns, which are dropped before any other.
    """
    shown = list(columns)
    while len(shown) > 1 and _needed(shown, NARROW_GAP) > width:
        shown.remove(max(shown, key=lambda column: (column.key in silent, column.priority)))
    return shown


def table(
    columns: Sequence[Column], rows: Sequence[Row], width: int, silent: Collection[str] = ()
) -> Lines:
    """Return the rows below their titles; `silent` is as for `visible`."""
    shown = visible(columns, width, silent)
    gap = GAP if _needed(shown, GAP) <= width else NARROW_GAP
    widths = _widths(shown, width, gap)
    titles = {column.key: Cell(column.title, Tone.FAINT) for column in shown}
    return tuple(_line(shown, widths, row, gap) for row in (titles, *rows))


def listed(
    columns: Sequence[Column], rows: Mapping[str, Row], width: int, foot: Lines = ()
) -> Listing:
    """Return a list to choose from, by the rows' keys, below the titles."""
    cells = tuple(rows.values())
    silent = [column.key for column in columns if all(_is_silent(column, row) for row in cells)]
    title, *lines = table(columns, cells, width, silent)
    return Listing((title,), tuple(map(ListRow, rows, lines)), foot)


def _is_silent(column: Column, row: Row) -> bool:
    return row[column.key].text in {"", MISSING}


def _needed(columns: Sequence[Column], gap: int) -> int:
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def _widths(columns: Sequence[Column], width: int, gap: int) -> list[int]:
    """Share what room is left among the columns that grow."""
    growing = [column for column in columns if column.grows]
    share = max(width - _needed(columns, gap), 0) // len(growing) if growing else 0
    return [column.width + (share if column.grows else 0) for column in columns]


def _line(columns: Sequence[Column], widths: Sequence[int], row: Row, gap: int) -> Line:
    cells: list[Cell] = []
    for column, column_width in zip(columns, widths, strict=True):
        cell = row[column.key]
        blanks = " " * gap if cells else ""
        text = fitted(cell.text, column_width, is_right=column.is_right)
        cells.append(Cell(blanks + text, cell.tone))
    return tuple(cells)
