"""Tables whose less important columns give way when the terminal is narrow.

Pure. Owns which columns are seen and how wide they are. Doesn't know what is in them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jupiter_tui.drawings.lines import Cell, Line, Lines, Tone, fitted
from jupiter_tui.drawings.listing import Listing
from jupiter_tui.drawings.listing import Row as ListRow

GAP = 2


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    key: str
    """Where its cells are found in a row."""
    title: str
    width: int
    """What it needs, in columns of the terminal."""
    priority: int
    """The column with the highest number gives way first."""
    is_right: bool = False
    grows: bool = False
    """Takes what room is left over."""


Row = Mapping[str, Cell]


def visible(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that fit side by side; the most important one always stays."""
    shown = list(columns)
    while len(shown) > 1 and _needed(shown) > width:
        shown.remove(max(shown, key=lambda column: column.priority))
    return shown


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Lines:
    """Return the rows below their titles."""
    shown = visible(columns, width)
    widths = _widths(shown, width)
    titles = {column.key: Cell(column.title, Tone.FAINT) for column in shown}
    return tuple(_line(shown, widths, row) for row in (titles, *rows))


def listed(
    columns: Sequence[Column], rows: Mapping[str, Row], width: int, foot: Lines = ()
) -> Listing:
    """Return a list to choose from, by the rows' keys, below the titles."""
    title, *lines = table(columns, tuple(rows.values()), width)
    return Listing((title,), tuple(map(ListRow, rows, lines)), foot)


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Share what room is left among the columns that grow."""
    growing = [column for column in columns if column.grows]
    share = max(width - _needed(columns), 0) // len(growing) if growing else 0
    return [column.width + (share if column.grows else 0) for column in columns]


def _line(columns: Sequence[Column], widths: Sequence[int], row: Row) -> Line:
    cells: list[Cell] = []
    for column, column_width in zip(columns, widths, strict=True):
        cell = row[column.key]
        gap = " " * GAP if cells else ""
        text = fitted(cell.text, column_width, is_right=column.is_right)
        cells.append(Cell(gap + text, cell.tone))
    return tuple(cells)
