"""The loss of a round: what the daemon tells of its beginning, and what came in since."""

import pytest

from jupiter_tui.model.curve import Curve, Point
from jupiter_tui.model.loss_history import History, HistoryPoint, history, smoothed
from jupiter_tui.model.loss_view import SMOOTHINGS, Axis, Look

RUN = "3f2a91bc00112233"
ROWS = [[4, 5.0, 400, 0.0], [8, 4.0, 800, 2.0]]


def document(**changed):
    told = {"run": RUN, "round": 2, "points": ROWS, "validation": [], "missing": []}
    return {"curve": told | changed}


def steps(known: History) -> list[int]:
    return [point.step for point in known.points]


def test_a_dashboard_opened_in_mid_training_shows_the_curve_from_the_beginning():
    live = Curve(RUN, 2, latest=Point(9, 3.5))
    assert steps(history(document(), live, RUN, 2)) == [4, 8, 9]


def test_what_the_daemon_has_told_by_now_is_not_shown_twice():
    live = Curve(RUN, 2, thinned=(Point(3, 6.0), Point(7, 4.5)), latest=Point(8, 4.0))
    assert steps(history(document(), live, RUN, 2)) == [4, 8]


@pytest.mark.parametrize("other", [{"run": "77" * 8}, {"round": 1}])
def test_the_curve_of_another_run_or_round_is_not_taken_for_this_one(other: dict):
    live = Curve(RUN, 2, latest=Point(9, 3.5))
    assert steps(history(document(**other), live, RUN, 2)) == [9]
    assert history(document(**other), Curve(), RUN, 2).points == ()


def test_the_loss_goes_along_steps_tokens_or_time_as_far_as_they_are_known():
    known = History(
        2, (HistoryPoint(4, 5.0, 400, 0.0), HistoryPoint(8, 4.0), HistoryPoint(9, 3.0, 900, 7.5))
    )
    assert known.along(Axis.STEP) == [(4, 5.0), (8, 4.0), (9, 3.0)]
    assert known.along(Axis.TOKENS) == [(400, 5.0), (900, 3.0)]
    assert known.along(Axis.TIME) == [(0.0, 5.0), (7.5, 3.0)]


def test_clocks_that_differ_between_machines_never_draw_a_line_backwards():
    known = History(
        1, tuple(HistoryPoint(n, 1.0, n, at) for n, at in enumerate((0.0, 5.0, 3.0, 6.0)))
    )
    assert [x for x, _ in known.along(Axis.TIME)] == [0.0, 5.0, 6.0]


def test_smoothing_keeps_a_level_and_the_first_point():
    level = [(float(step), 3.0) for step in range(50)]
    assert smoothed(level, 0.9) == [(x, pytest.approx(3.0)) for x, _ in level]
    assert smoothed([(7, 9.0), (8, 1.0)], 0.99)[0] == (7, pytest.approx(9.0))


def test_smoothing_takes_most_of_the_noise_away():
    noisy = [(float(step), 5.0 + (-1) ** step) for step in range(100)]
    assert all(abs(loss - 5.0) < 0.12 for _, loss in smoothed(noisy, 0.9)[30:])


def test_no_smoothing_leaves_the_points_as_they_are():
    points = [(1.0, 5.0), (2.0, 1.0)]
    assert smoothed(points, 0.0) == points


def test_a_look_goes_from_choice_to_choice():
    look, seen = Look(), []
    for _ in range(4):
        seen.append(look.axis)
        look = look.with_next_axis()
    assert seen == [Axis.STEP, Axis.TOKENS, Axis.TIME, Axis.STEP]
    assert look.with_other_scale().is_log
    assert not look.with_other_scale().with_other_scale().is_log
    assert look.smoother_by(99).smoothing == SMOOTHINGS[-1]
    assert look.smoother_by(-99).smoothing == 0.0
