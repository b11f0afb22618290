"""The curve of a round, of what the nodes have written whose rank 0 was at work one after another.

Owns whose points count from which step on. Pure: it gets the curves of each node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.base.thinned_curve import CurvePoint, DrawnCurve, thinned
from jupiterd.daemon.queries.cycle.curve_wire import Curves
from jupiterd.ids import NodeId


@dataclass(frozen=True)
class CurveWriter:
    """Who has written the steps of an attempt: the node of its rank 0."""

    node: NodeId
    island: int
    """0: the run's own gang."""
    from_step: int
    """The attempt's steps come after it."""


@dataclass(frozen=True)
class MergedCurve:
    """The loss of a round from its beginning, as far as its writers have answered."""

    points: Sequence[CurvePoint]
    """Of several islands the mean."""
    validations: Sequence[CurvePoint]


def whole_curve(
    writers: Sequence[CurveWriter], curves: Mapping[NodeId, Curves], round_number: int
) -> MergedCurve:
    """Return the curve of a round.

    Args:
        writers: of each island in the order of their attempts.
        curves: what each node has written.
        round_number: what a node wrote of another one isn't taken.
    """
    islands = dict.fromkeys(writer.island for writer in writers)
    lines = [
        _line([writer for writer in writers if writer.island == island], curves, round_number)
        for island in islands
    ]
    points = thinned(point for line in lines for point in line.points)
    found = sorted(point for line in lines for point in line.validations)
    return MergedCurve(points, found)


def _line(
    writers: Iterable[CurveWriter], curves: Mapping[NodeId, Curves], round_number: int
) -> MergedCurve:
    """Return the curve of one gang; an attempt that went back takes back what was beyond it."""
    points: list[CurvePoint] = []
    validations: list[CurvePoint] = []
    for writer in writers:
        curve = curves.get(writer.node, {}).get(writer.island)
        points = _up_to(points, writer.from_step)
        validations = _up_to(validations, writer.from_step)
        if curve is not None and _is_of(curve, round_number):
            points += [each for each in curve.points if each.step > writer.from_step]
            validations += [each for each in curve.validations if each.step > writer.from_step]
    return MergedCurve(points, validations)


def _up_to(points: Sequence[CurvePoint], step: int) -> list[CurvePoint]:
    return [point for point in points if point.step <= step]


def _is_of(curve: DrawnCurve, round_number: int) -> bool:
    return curve.round is None or curve.round == round_number
