"""Line charts and interval charts as inline SVG.

Pure. Owns the scales, the ticks and the legend. Doesn't know the meaning of the values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.ctl.report.html import Html, element, joined, text

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 28, 36
MAX_POINTS = 600
"""The highest number of points of a curve: longer ones are thinned, to keep the file small."""

COLOURS = 4
_TICKS = 5

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One curve."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Interval:
    """A value between two bounds, at one x."""

    x: float
    low: float
    value: float
    high: float


@dataclass(frozen=True)
class _Scale:
    """Maps values to positions in the drawing; `x` and `y`: the lowest and highest values."""

    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, point: Point) -> Point:
        """Return the position of a point, in units of the drawing."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (point[0] - x0) / (x1 - x0)
        up = (point[1] - y0) / (y1 - y0)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )


def line_chart(title: str, x_name: str, series: Sequence[Series]) -> Html:
    """Return a chart of curves over one x axis; empty if no curve has a finite point."""
    drawn = [Series(each.name, _thinned(_finite(each.points))) for each in series]
    drawn = [each for each in drawn if each.points]
    if not drawn:
        return Html("")
    scale = _scale([point for each in drawn for point in each.points])
    lines = [_curve(each, number, scale) for number, each in enumerate(drawn)]
    return _figure(title, x_name, scale, [*lines, _legend([each.name for each in drawn])])


def interval_chart(title: str, x_name: str, intervals: Sequence[Interval], mark: float) -> Html:
    """Return a chart of intervals with lines at zero and at `mark`; empty without intervals."""
    known = [each for each in intervals if all(map(math.isfinite, (each.low, each.high)))]
    if not known:
        return Html("")
    ends = [(each.x + side, y) for each in known for side in (-0.5, 0.5) for y in
            (each.low, each.high, 0.0, mark)]  # fmt: skip
    scale = _scale(ends)
    marks = [
        _straight((scale.x[0], y), (scale.x[1], y), scale, "zero" if y == 0 else "axis s1")
        for y in (0.0, mark)
    ]
    drawn = [_whisker(each, scale) for each in known]
    return _figure(title, x_name, scale, [*marks, *drawn])


def _finite(points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most MAX_POINTS points: means of neighbouring points, and the last one."""
    if len(points) <= MAX_POINTS:
        return list(points)
    size = math.ceil(len(points) / (MAX_POINTS - 1))
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    means = [
        (math.fsum(x for x, _ in part) / len(part), math.fsum(y for _, y in part) / len(part))
        for part in parts
    ]
    return [*means, points[-1]]


def _scale(points: Sequence[Point]) -> _Scale:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return _Scale(_widened(min(xs), max(xs), 0.0), _widened(min(ys), max(ys), 0.06))


def _widened(low: float, high: float, share: float) -> Point:
    if high <= low:
        around = abs(low) / 2 or 1.0
        return low - around, high + around
    return low - share * (high - low), high + share * (high - low)


def _curve(series: Series, number: int, scale: _Scale) -> Html:
    colour = number % COLOURS
    places = [scale.at(point) for point in series.points]
    if len(places) == 1:
        (x, y), *_ = places
        return element("path", d=f"M{x:.1f} {y:.1f}h0", class_=f"dot s{colour}")
    path = "M" + " ".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return element("path", d=path, class_=f"line s{colour}")


def _whisker(interval: Interval, scale: _Scale) -> Html:
    top, low = (scale.at((interval.x, y)) for y in (interval.high, interval.low))
    x, y = scale.at((interval.x, interval.value))
    line = element("path", d=f"M{top[0]:.1f} {top[1]:.1f}V{low[1]:.1f}", class_="line s0")
    return joined([line, element("path", d=f"M{x:.1f} {y:.1f}h0", class_="dot s0")])


def _straight(first: Point, last: Point, scale: _Scale, kind: str) -> Html:
    (x0, y0), (x1, y1) = scale.at(first), scale.at(last)
    return element("path", d=f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}", class_=kind)


def _figure(title: str, x_name: str, scale: _Scale, drawn: Sequence[Html]) -> Html:
    content = [*_axes(scale, x_name), *drawn]
    svg = element(
        "svg",
        element("title", title),
        *content,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=title,
    )
    return element("figure", element("figcaption", title), svg)


def _axes(scale: _Scale, x_name: str) -> list[Html]:
    found: list[Html] = []
    for value in _ticks(*scale.y):
        found.append(_straight((scale.x[0], value), (scale.x[1], value), scale, "axis"))
        _, y = scale.at((scale.x[0], value))
        found.append(_label(LEFT - 6, y + 4, f"{value:g}", "end"))
    for value in _ticks(*scale.x):
        x, _ = scale.at((value, scale.y[0]))
        found.append(_label(x, HEIGHT - BOTTOM + 16, f"{value:,g}", "middle"))
    return [*found, _label(WIDTH - RIGHT, HEIGHT - 4, x_name, "end")]


def _legend(names: Sequence[str]) -> Html:
    parts: list[Html] = []
    x = float(LEFT)
    for number, name in enumerate(names):
        parts.append(element("rect", x=f"{x:.0f}", y=8, width=10, height=10,
                             class_=f"f{number % COLOURS}"))  # fmt: skip
        parts.append(_label(x + 15, 17, name, "start"))
        x += 30 + 7 * len(name)
    return joined(parts)


def _label(x: float, y: float, words: str, anchor: str) -> Html:
    return element("text", text(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two bounds, for an axis."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= rough)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]
