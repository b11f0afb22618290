import itertools

from jupiter_tui.model.curve import MAX_POINTS, Curve, Point, extended


def _curve(steps) -> Curve:
    curve = Curve()
    for step in steps:
        curve = extended(curve, "c", 1, Point(step, 1 / (step + 1)))
    return curve


def test_every_point_of_a_short_training_is_kept():
    assert [point.step for point in _curve(range(0, 50, 5)).points] == list(range(0, 50, 5))


def test_another_round_starts_another_curve():
    curve = extended(_curve(range(9)), "c", 2, Point(0, 3.0))
    assert (curve.round, curve.points) == (2, (Point(0, 3.0),))


def test_another_cycle_starts_another_curve():
    assert extended(_curve(range(9)), "d", 1, Point(4, 3.0)).points == (Point(4, 3.0),)


def test_a_step_that_is_told_twice_is_kept_once_with_its_later_value():
    curve = extended(_curve([1, 2, 3]), "c", 1, Point(3, 9.0))
    assert [point.step for point in curve.points] == [1, 2, 3]
    assert curve.points[-1].loss == 9.0


def test_training_that_goes_back_to_a_checkpoint_takes_the_curve_back():
    curve = extended(_curve(range(0, 100, 10)), "c", 1, Point(45, 0.5))
    assert [point.step for point in curve.points] == [0, 10, 20, 30, 40, 45]


def test_a_long_training_is_thinned_out_evenly_and_keeps_its_ends():
    curve = _curve(range(0, 100_000, 7))
    steps = [point.step for point in curve.points]
    assert MAX_POINTS / 4 < len(steps) <= MAX_POINTS + 1
    assert (steps[0], steps[-1]) == (0, 99_995)
    gaps = [after - before for before, after in itertools.pairwise(steps[:-1])]
    assert max(gaps) <= 2 * min(gaps) + 7
