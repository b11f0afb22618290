"""The loss of a round over its steps, thinned out as it grows: a bounded number of points.

Owns reading one line of a curve's file, and what becomes of neighbours: their mean. Pure. Doesn't
know where lines come from (`workers.train.report.metrics` writes them), or how a curve is drawn.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_BINS = 400
"""More than a chart has columns; twice as many steps share a bin from then on."""


class CurvePoint(NamedTuple):
    """The loss up to a step: the mean since the point before."""

    step: int
    loss: float
    tokens: int | None = None
    """Trained on in this round by then; None: nobody noted it."""
    at_s: float | None = None
    """Wall clock, in seconds since 1970."""


class CurveLine(NamedTuple):
    """What one line of a curve's file says."""

    point: CurvePoint
    is_validation: bool
    round: int | None


class DrawnCurve(NamedTuple):
    """A curve as it is at a moment."""

    round: int | None
    """That it is of; None: nobody noted it."""
    points: tuple[CurvePoint, ...]
    validations: tuple[CurvePoint, ...]
    """The loss on text that was held out, where it was taken."""


@dataclass
class _Bin:
    total: float
    count: int
    last: CurvePoint

    def point(self) -> CurvePoint:
        return self.last._replace(loss=self.total / self.count)


@dataclass
class ThinnedCurve:
    """Points in the order of their steps, at most MAX_BINS of them, and as many validations."""

    stride_steps: int = 1
    _round: int | None = None
    _bins: list[_Bin] = field(default_factory=list[_Bin])
    _validations: list[CurvePoint] = field(default_factory=list[CurvePoint])

    def drawn(self) -> DrawnCurve:
        """Return it as it is now."""
        points = tuple(each.point() for each in self._bins)
        return DrawnCurve(self._round, points, tuple(self._validations))

    def take(self, line: CurveLine) -> None:
        """Take in what a line says; its step is no earlier than those before."""
        self._round = line.round
        if line.is_validation:
            self._validations.append(line.point)
            if len(self._validations) > MAX_BINS:
                self._validations = self._validations[1::2]
        else:
            self.add(line.point)

    def add(self, point: CurvePoint) -> None:
        """Take in the training loss of a step."""
        if self._bins and self._same_bin(self._bins[-1], point):
            self._join(self._bins[-1], _Bin(point.loss, 1, point))
            return
        self._bins.append(_Bin(point.loss, 1, point))
        if len(self._bins) > MAX_BINS:
            self._thin_out()

    def _thin_out(self) -> None:
        self.stride_steps *= 2
        found: list[_Bin] = []
        for each in self._bins:
            if found and self._same_bin(found[-1], each.last):
                self._join(found[-1], each)
            else:
                found.append(each)
        self._bins = found

    def _same_bin(self, last: _Bin, point: CurvePoint) -> bool:
        stride = self.stride_steps
        return (last.last.step - 1) // stride == (point.step - 1) // stride

    @staticmethod
    def _join(last: _Bin, more: _Bin) -> None:
        last.total, last.count, last.last = (
            last.total + more.total,
            last.count + more.count,
            more.last,
        )


def read_line(text: str) -> CurveLine | None:
    """Return what a line says of the loss; None where it says nothing of it, or was torn."""
    try:
        fields = json.loads(text)
        is_validation = fields.get("val_loss") is not None
        loss = float(fields["val_loss"] if is_validation else fields["loss"])
        point = CurvePoint(
            int(fields["step"]), loss, _whole(fields, "tokens"), _number(fields, "at_s")
        )
        return (
            CurveLine(point, is_validation, _whole(fields, "round"))
            if math.isfinite(loss)
            else None
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def thinned(points: Iterable[CurvePoint]) -> list[CurvePoint]:
    """Return points of several curves as one, in the order of their steps."""
    curve = ThinnedCurve()
    for point in sorted(points, key=lambda point: point.step):
        curve.add(point)
    return list(curve.drawn().points)


def _whole(fields: dict[str, Any], name: str) -> int | None:
    return None if fields.get(name) is None else int(fields[name])


def _number(fields: dict[str, Any], name: str) -> float | None:
    return None if fields.get(name) is None else float(fields[name])
