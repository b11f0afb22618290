"""The loss of one round over its steps, since the dashboard started.

Pure. Owns which points stay in memory. Doesn't know how a curve is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_POINTS = 400
"""More than a chart has columns; beyond that every other point is dropped."""


class Point(NamedTuple):
    """The loss at one step."""

    step: int
    loss: float


@dataclass(frozen=True)
class Curve:
    """The points of one round of one cycle; their steps only ever grow."""

    cycle: str = ""
    round: int = 0
    thinned: tuple[Point, ...] = ()
    """All but the latest: at least `stride_steps` apart, at most MAX_POINTS."""
    latest: Point | None = None
    stride_steps: int = 1

    @property
    def points(self) -> tuple[Point, ...]:
        """Return everything that is known, the latest point at the end."""
        return self.thinned if self.latest is None else (*self.thinned, self.latest)


def extended(curve: Curve, cycle: str, round_number: int, point: Point) -> Curve:
    """Return the curve with one more point.

    Another round starts another curve. A step that was seen before (training that went back to
    its last checkpoint) takes the place of everything from there on.
    """
    if (curve.cycle, curve.round) != (cycle, round_number):
        return Curve(cycle, round_number, latest=point)
    before = tuple(known for known in curve.points if known.step < point.step)
    thinned, stride_steps = _thinned(before, curve.stride_steps)
    return Curve(cycle, round_number, thinned, point, stride_steps)


def _thinned(points: Sequence[Point], stride_steps: int) -> tuple[tuple[Point, ...], int]:
    """Leave out the last point if it is too near, and every other one if there are too many."""
    if len(points) > 1 and points[-1].step - points[-2].step < stride_steps:
        points = points[:-1]
    if len(points) <= MAX_POINTS:
        return tuple(points), stride_steps
    span_steps = points[-1].step - points[0].step
    return tuple(points[::2]), max(2 * span_steps // len(points), 1)
