"""Curves made of characters: braille dots, or ASCII.

Pure. Owns the mapping from points to dots, the scales, and the labels of the axes. Doesn't know
what is drawn.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone

Points = Sequence[tuple[float, float]]
"""(x, y), x growing."""

LABEL_WIDTH = 8
BLANK_BRAILLE = 0x2800
DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each of the 4 x 2 dots of a braille character, by row and column."""

MARK = "◆"
"""A point that stands for itself."""

Dot = tuple[int, int]
"""Column and row; row 0 is at the top."""


@dataclass(frozen=True)
class Layer:
    """One curve of a chart; later ones lie above earlier ones."""

    points: Points
    tone: Tone = Tone.NORMAL
    is_marked: bool = False
    """Its points are marked one by one, and not joined."""


@dataclass(frozen=True)
class Scales:
    """The values at the edges of a chart."""

    left: float
    right: float
    low: float
    high: float
    is_log: bool = False

    def across(self, x: float) -> float:
        """Return how far to the right a point is, from 0 to 1."""
        return (x - self.left) / (self.right - self.left) if self.right > self.left else 1.0

    def down(self, y: float) -> float:
        """Return how far down it is, from 0 to 1; where all are as high, it is in the middle."""
        high, low, here = (self._scaled(each) for each in (self.high, self.low, y))
        return min(max((high - here) / (high - low), 0.0), 1.0) if high > low else 0.5

    def at(self, share: float) -> float:
        """Return the height so far down."""
        if self.is_log:
            high, low = math.log10(self.high), math.log10(self.low)
            return 10 ** (high - share * (high - low))
        return self.high - share * (self.high - self.low)

    def _scaled(self, y: float) -> float:
        return math.log10(max(y, self.low)) if self.is_log else y


def plotted(
    layers: Sequence[Layer],
    width: int,
    height: int,
    *,
    is_ascii: bool,
    is_log: bool = False,
    named: Callable[[float], str] = lambda x: f"{x:,.0f}",
) -> Lines:
    """Return the chart in lines of at most `width`: the curves, the axes and their labels.

    Args:
        layers: at least one point in all.
        width: columns of the terminal, labels included.
        height: lines of the terminal, the axis and its labels included.
        is_ascii: draw with asterisks, one for a character, instead of eight dots.
        is_log: a tenfold is as high everywhere; only where all heights are above 0.
        named: how a place on the axis below is written.
    """
    columns, rows = max(width - LABEL_WIDTH - 1, 1), max(height - 2, 1)
    scales = scales_of(layers, is_log=is_log)
    cells = _drawn(layers, scales, columns, rows, is_ascii=is_ascii)
    labels = _labels(scales, rows)
    chart = tuple(
        (Cell(f"{labels.get(row, ''):>{LABEL_WIDTH}}┤", Tone.FAINT), *_joined(cells, row, columns))
        for row in range(rows)
    )
    first, last = named(scales.left), named(scales.right)
    blanks = " " * max(columns - len(first) - len(last), 1)
    below = (
        (Cell(" " * LABEL_WIDTH + "└" + "─" * columns, Tone.FAINT),),
        (Cell((" " * (LABEL_WIDTH + 1) + first + blanks + last)[:width], Tone.FAINT),),
    )
    return (*chart, *below)


def scales_of(layers: Sequence[Layer], *, is_log: bool = False) -> Scales:
    """Return the scales on which every point of every layer has its place."""
    points = [point for layer in layers for point in layer.points]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return Scales(min(xs), max(xs), min(ys), max(ys), is_log=is_log and min(ys) > 0)


def dots_of(points: Points, columns: int, rows: int, scales: Scales | None = None) -> set[Dot]:
    """Return the dots of a line through the points."""
    scales = scales or scales_of([Layer(points)])
    dots: set[Dot] = set()
    before: int | None = None
    for column, y in _sampled(points, columns, scales):
        row = round(scales.down(y) * (rows - 1))
        from_row = row if before is None else before
        # A steep line has gaps between its columns unless they are filled.
        dots |= {(column, each) for each in range(min(from_row, row), max(from_row, row) + 1)}
        before = row
    return dots


def _sampled(points: Points, columns: int, scales: Scales) -> Iterator[tuple[int, float]]:
    """Yield the height of the line in each of its columns; between two points it is straight."""
    first, last = (round(scales.across(points[end][0]) * (columns - 1)) for end in (0, -1))
    xs = [x for x, _ in points]
    for column in range(first, last + 1):
        share = column / (columns - 1) if columns > 1 else 1.0
        x = scales.left + (scales.right - scales.left) * share
        yield column, _height(points, xs, x)


def _height(points: Points, xs: Sequence[float], x: float) -> float:
    right = min(max(bisect_left(xs, x), 1), len(points) - 1)
    if right < 1:
        return points[0][1]
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    share = min(max((x - x0) / (x1 - x0), 0.0), 1.0) if x1 > x0 else 1.0
    return y0 + (y1 - y0) * share


def _drawn(
    layers: Sequence[Layer], scales: Scales, columns: int, rows: int, *, is_ascii: bool
) -> Mapping[Dot, Cell]:
    """Return the characters that aren't blank, by their places."""
    across, down = (1, 1) if is_ascii else (2, 4)
    bits: dict[Dot, int] = {}
    cells: dict[Dot, Cell] = {}
    for layer in (each for each in layers if each.points):
        if layer.is_marked:
            cells |= {
                place: Cell(MARK, layer.tone) for place in _marks(layer, scales, columns, rows)
            }
            continue
        for column, row in dots_of(layer.points, columns * across, rows * down, scales):
            place = column // across, row // down
            bits[place] = bits.get(place, 0) | DOT_BITS[row % 4][column % 2]
            sign = "*" if is_ascii else chr(BLANK_BRAILLE + bits[place])
            cells[place] = Cell(sign, layer.tone)
    return cells


def _marks(layer: Layer, scales: Scales, columns: int, rows: int) -> Iterator[Dot]:
    for x, y in layer.points:
        yield round(scales.across(x) * (columns - 1)), round(scales.down(y) * (rows - 1))


def _joined(cells: Mapping[Dot, Cell], row: int, columns: int) -> Line:
    """Return one line, as few cells as its tones allow."""
    found = [cells.get((column, row), Cell(" ")) for column in range(columns)]
    runs = groupby(found, key=lambda cell: cell.tone)
    return tuple(Cell("".join(cell.text for cell in run), tone) for tone, run in runs)


def _labels(scales: Scales, rows: int) -> Mapping[int, str]:
    """Return row -> label: of the highest, the middle and the lowest row, where there is room."""
    shown = {0, rows - 1} | ({rows // 2} if rows > 6 else set())
    return {
        row: f"{scales.at(row / (rows - 1) if rows > 1 else 0.0):.3f}"[:LABEL_WIDTH]
        for row in shown
    }
