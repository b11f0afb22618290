"""The loss of a round as the daemon's curve document tells it, and what came in since.

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
    """The loss up to a step; the mean since the point before."""

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
    """Nodes that have written a part of it, and don't answer."""

    def along(self, axis: Axis) -> Points:
        """Return the training loss along an axis, as far as that is known."""
        return _along(self.points, axis)

    def validated_along(self, axis: Axis) -> Points:
        """Return the loss on what was held out."""
        return _along(self.validations, axis)


def history(document: Mapping[str, Any], live: Curve, run: str, round_number: int) -> History:
    """Return a round's loss from its first step on.

    Args:
        document: the curve's, as the daemon told it last; empty before it did.
        live: what the status has told since the dashboard looks.
        run: the cycle or run that is shown.
        round_number: the one that is shown.
    """
    told: Mapping[str, Any] = document.get("curve") or {}
    is_of_this = (told.get("run"), told.get("round")) == (run, round_number)
    known = tuple(_read(told.get("points"))) if is_of_this else ()
    last = known[-1].step if known else -1
    is_live = (live.cycle, live.round) == (run, round_number)
    # A run that went back is told anew within seconds; until then its old end stays.
    newer = [p for p in live.points if p.step > last] if is_live else []
    points = (*known, *(HistoryPoint(point.step, point.loss) for point in newer))
    validations = tuple(_read(told.get("validation"))) if is_of_this else ()
    missing = tuple(map(str, told.get("missing") or ())) if is_of_this else ()
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
