import itertools
import json

import pytest

from jupiterd.cycle.base.thinned_curve import (
    MAX_BINS,
    CurveLine,
    CurvePoint,
    ThinnedCurve,
    read_line,
    thinned,
)


def curve_of(steps: range, loss: float = 2.0) -> ThinnedCurve:
    curve = ThinnedCurve()
    for step in steps:
        curve.add(CurvePoint(step, loss, step * 100, float(step)))
    return curve


def test_a_short_curve_is_kept_whole():
    points = curve_of(range(1, MAX_BINS + 1)).drawn().points
    assert [point.step for point in points] == list(range(1, MAX_BINS + 1))


def test_a_long_curve_keeps_its_span_in_bins_of_equal_width():
    points = curve_of(range(1, 100_001)).drawn().points
    steps = [point.step for point in points]
    gaps = {after - before for before, after in itertools.pairwise(steps[:-1])}
    assert MAX_BINS / 4 < len(points) <= MAX_BINS
    assert steps[-1] == 100_000
    assert gaps == {256}


def test_a_bin_has_the_mean_of_its_steps_so_that_no_spike_is_lost_or_made():
    curve = ThinnedCurve()
    losses = [float(step % 2) for step in range(1, 2 * MAX_BINS + 1)]
    for step, loss in enumerate(losses, 1):
        curve.add(CurvePoint(step, loss))
    points = curve.drawn().points
    assert len(points) == MAX_BINS
    assert {point.loss for point in points} == {0.5}


def test_a_point_says_how_far_training_was_at_its_last_step():
    last = curve_of(range(1, 5 * MAX_BINS)).drawn().points[-1]
    assert (last.tokens, last.at_s) == (last.step * 100, float(last.step))


def test_the_curves_of_islands_are_one_curve_of_means():
    one = [CurvePoint(step, 1.0) for step in range(1, 2001)]
    other = [CurvePoint(step, 3.0) for step in range(1, 2001)]
    found = thinned([*one, *other])
    assert {point.loss for point in found} == {2.0}
    assert [point.step for point in found] == sorted({point.step for point in found})


def test_a_line_tells_its_step_its_round_and_when_it_was():
    said = {"step": 7, "round": 2, "tokens": 700, "at_s": 5.5, "loss": 2.5, "lr": 0.1}
    assert read_line(json.dumps(said)) == CurveLine(CurvePoint(7, 2.5, 700, 5.5), False, 2)
    passed = {"step": 7, "train_loss": 2.4, "val_loss": 2.6}
    assert read_line(json.dumps(passed)) == CurveLine(CurvePoint(7, 2.6), True, None)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"step": 1}', '{"loss": 1.0}', '{"step": 1, "loss": NaN}',
     '{"step": 1, "loss": "high"}', '{"step": 1, "loss": 1.0, "tokens": {}}'],
)  # fmt: skip
def test_what_was_torn_or_is_no_number_says_nothing(text: str):
    assert read_line(text) is None


def test_validations_stand_beside_the_curve():
    curve = ThinnedCurve()
    curve.take(CurveLine(CurvePoint(1, 3.0), False, 1))
    curve.take(CurveLine(CurvePoint(1, 3.5), True, 1))
    drawn = curve.drawn()
    assert (len(drawn.points), drawn.validations) == (1, (CurvePoint(1, 3.5),))
