"""A round's curve, of what several nodes have written one after another."""

from jupiterd.cycle.base.thinned_curve import CurvePoint, DrawnCurve
from jupiterd.daemon.queries.cycle.curve_merge import CurveWriter, whole_curve
from jupiterd.ids import NodeId

A, B = NodeId("a" * 32), NodeId("b" * 32)


def wrote(steps: range, loss: float, round_number: int | None = 1, last: float | None = None):
    points = tuple(CurvePoint(step, loss) for step in steps)
    validations = () if last is None else (CurvePoint(steps[-1], last),)
    return DrawnCurve(round_number, points, validations)


def losses(curve) -> list[tuple[int, float]]:
    return [(point.step, point.loss) for point in curve.points]


def test_one_node_has_written_it_all():
    found = whole_curve([CurveWriter(A, 0, 0)], {A: {0: wrote(range(1, 4), 2.0, last=2.5)}}, 1)
    assert losses(found) == [(1, 2.0), (2, 2.0), (3, 2.0)]
    assert found.validations == [CurvePoint(3, 2.5)]


def test_an_attempt_on_another_node_goes_on_where_it_began():
    writers = [CurveWriter(A, 0, 0), CurveWriter(B, 0, 3), CurveWriter(A, 0, 5)]
    again = DrawnCurve(1, (*wrote(range(1, 5), 1.0).points, *wrote(range(6, 8), 1.0).points), ())
    told = {A: {0: again}, B: {0: wrote(range(4, 7), 9.0)}}
    assert losses(whole_curve(writers, told, 1)) == [
        (1, 1.0), (2, 1.0), (3, 1.0), (4, 9.0), (5, 9.0), (6, 1.0), (7, 1.0),
    ]  # fmt: skip


def test_what_a_node_wrote_of_another_round_is_not_taken():
    writers = [CurveWriter(A, 0, 0), CurveWriter(B, 0, 2)]
    told = {A: {0: wrote(range(1, 9), 7.0, round_number=1)}, B: {0: wrote(range(3, 5), 2.0, 2)}}
    assert losses(whole_curve(writers, told, 2)) == [(3, 2.0), (4, 2.0)]


def test_a_node_that_tells_nothing_leaves_a_gap():
    writers = [CurveWriter(A, 0, 0), CurveWriter(B, 0, 2)]
    assert losses(whole_curve(writers, {B: {0: wrote(range(3, 5), 2.0)}}, 1)) == [
        (3, 2.0),
        (4, 2.0),
    ]


def test_of_islands_the_mean_is_told():
    writers = [CurveWriter(A, 1, 0), CurveWriter(B, 2, 0)]
    told = {A: {1: wrote(range(1, 3), 1.0)}, B: {2: wrote(range(1, 3), 2.0)}}
    assert losses(whole_curve(writers, told, 1)) == [(1, 1.5), (2, 1.5)]
