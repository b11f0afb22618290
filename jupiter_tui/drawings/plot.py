"""A curve made of characters: braille dots, or ASCII.

Pure. Owns the mapping from points to dots, and the labels of the axes. Doesn't know what is drawn.
"""

from bisect import bisect_left
from collections.abc import Sequence

Points = Sequence[tuple[float, float]]
"""(x, y), x growing."""

LABEL_WIDTH = 8
BLANK_BRAILLE = 0x2800
DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each of the 4 x 2 dots of a braille character, by row and column."""


def plotted(points: Points, width: int, height: int, *, is_ascii: bool) -> list[str]:
    """Return the chart in lines of at most `width`: the curve, its axes and their labels.

    Args:
        points: at least one.
        width: columns of the terminal, labels included.
        height: lines of the terminal, the axis and its labels included.
        is_ascii: draw with asterisks, one for a character, instead of eight dots.
    """
    columns, rows = max(width - LABEL_WIDTH - 1, 1), max(height - 2, 1)
    across, down = (1, 1) if is_ascii else (2, 4)
    dots = dots_of(points, columns * across, rows * down)
    drawn = _stars(dots, columns, rows) if is_ascii else _braille(dots, columns, rows)
    high, low = max(y for _, y in points), min(y for _, y in points)
    labels = [f"{high:{LABEL_WIDTH}.3f}", *[" " * LABEL_WIDTH] * (rows - 1)]
    if rows > 1:
        labels[-1] = f"{low:{LABEL_WIDTH}.3f}"
    chart = [f"{label}┤{text}" for label, text in zip(labels, drawn, strict=True)]
    axis = " " * LABEL_WIDTH + "└" + "─" * columns
    first, last = f"step {points[0][0]:,.0f}", f"{points[-1][0]:,.0f}"
    blanks = " " * max(columns - len(first) - len(last), 1)
    return [*chart, axis, " " * (LABEL_WIDTH + 1) + first + blanks + last]


def dots_of(points: Points, columns: int, rows: int) -> set[tuple[int, int]]:
    """Return the (column, row) of every dot of a line through the points; row 0 is at the top."""
    high, low = max(y for _, y in points), min(y for _, y in points)
    heights = [_row_of(y, high, low, rows) for y in _sampled(points, columns)]
    dots: set[tuple[int, int]] = set()
    for column, row in enumerate(heights):
        before = heights[column - 1] if column else row
        # A steep line has gaps between its columns unless they are filled.
        dots |= {(column, between) for between in range(min(before, row), max(before, row) + 1)}
    return dots


def _sampled(points: Points, columns: int) -> list[float]:
    """Return the height of the line in each column; between two points it is straight."""
    first, last = points[0][0], points[-1][0]
    if len(points) == 1 or columns == 1 or first == last:
        return [points[-1][1]]
    steps = [x for x, _ in points]
    sampled: list[float] = []
    for column in range(columns):
        x = first + (last - first) * column / (columns - 1)
        right = min(max(bisect_left(steps, x), 1), len(points) - 1)
        (x0, y0), (x1, y1) = points[right - 1], points[right]
        sampled.append(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    return sampled


def _row_of(y: float, high: float, low: float, rows: int) -> int:
    share = (high - y) / (high - low) if high > low else 0.5
    return min(max(round(share * (rows - 1)), 0), rows - 1)


def _stars(dots: set[tuple[int, int]], columns: int, rows: int) -> list[str]:
    return [
        "".join("*" if (column, row) in dots else " " for column in range(columns))
        for row in range(rows)
    ]


def _braille(dots: set[tuple[int, int]], columns: int, rows: int) -> list[str]:
    bits = [[0] * columns for _ in range(rows)]
    for column, row in dots:
        bits[row // 4][column // 2] |= DOT_BITS[row % 4][column % 2]
    return ["".join(chr(BLANK_BRAILLE + each) for each in row) for row in bits]
