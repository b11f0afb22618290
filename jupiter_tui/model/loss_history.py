"""The loss of a round: the daemon's curve document, and the points that arrived after it.

Pure. Owns reading the document, the axes, and the smoothing. Doesn't know how it is drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jupiter_tui.model.curve import Curve
from jupiter_tui.model.loss_view import Axis

Points = list[tuple[float, float]]
"""(x, loss), x growing."""


class HistoryPoint(NamedTuple):
    """The mean loss in nats per token, from the previous point's step up to this one."""

    step: int
    loss: float
    tokens: int | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True)
class History:
    """What is known of the present round's loss."""

    round: int
    points: tuple[HistoryPoint, ...]
    validations: tuple[HistoryPoint, ...] = ()
    missing: tuple[str, ...] = ()
    """Names of nodes that hold a part of the curve and don't answer."""

    def along(self, axis: Axis) -> Points:
        """Return (x, training loss); points whose x isn't known on this axis are left out."""
        return _along(self.points, axis)

    def validated_along(self, axis: Axis) -> Points:
        """Return (x, loss on held-out text)."""
        return _along(self.validations, axis)


def history(document: Mapping[str, Any], live: Curve, run: str, round_number: int) -> History:
    """Return a round's loss from its first step on.

    Args:
        document: the daemon's last curve document; empty before the first one.
        live: the points that status documents have brought since the dashboard started.
        run: id of the cycle or run that is shown.
        round_number: the round that is shown.
    """
    curve: Mapping[str, Any] = document.get("curve") or {}
    is_of_this = (curve.get("run"), curve.get("round")) == (run, round_number)
    known = tuple(_read(curve.get("points"))) if is_of_this else ()
    last = known[-1].step if known else -1
    is_live = (live.cycle, live.round) == (run, round_number)
    # A run that went back to a checkpoint gets a new document within seconds; until then the old
    # end of the curve stays.
    newer = [p for p in live.points if p.step > last] if is_live else []
    points = (*known, *(HistoryPoint(point.step, point.loss) for point in newer))
    validations = tuple(_read(curve.get("validation"))) if is_of_this else ()
    missing = tuple(map(str, curve.get("missing") or ())) if is_of_this else ()
    return History(round_number, points, validations, missing)


def smoothed(points: Points, memory: float) -> Points:
    """Return the points with a moving average for loss: batches differ more than steps do.

    The exponential one whose start is divided by the weight that it has so far, so that it isn't
    pulled toward 0 (as Adam corrects its moments: Kingma and Ba 2014, section 3).
    """
    mean, weight, found = 0.0, 0.0, list[tuple[float, float]]()
    for x, loss in points:
        mean = memory * mean + (1 - memory) * loss
        weight = memory * weight + (1 - memory)
        found.append((x, mean / weight))
    return found


def _along(points: Iterable[HistoryPoint], axis: Axis) -> Points:
    found: Points = []
    for point in points:
        x = {Axis.STEP: point.step, Axis.TOKENS: point.tokens, Axis.TIME: point.elapsed_s}[axis]
        if x is not None and (not found or x >= found[-1][0]):
            found.append((float(x), point.loss))
    return found


def _read(rows: Sequence[Sequence[Any]] | None) -> Iterable[HistoryPoint]:
    for row in rows or ():
        yield HistoryPoint(*row)
