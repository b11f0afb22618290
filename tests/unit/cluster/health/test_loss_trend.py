"""Which losses are a jump, and which silence is standing still."""

import random

import pytest

from jupiterd.cluster.health.loss_trend import FIRST_STEP_S, LEAST, STALL_S, LossTrend
from jupiterd.cluster.health.run_alerts import LiveTraining, RunAlerts
from jupiterd.ids import CycleId


def followed(losses: list[float]) -> list[int]:
    """Return the positions at which a trend says that the loss has jumped."""
    trend, jumps = LossTrend(0.0), list[int]()
    for position, loss in enumerate(losses):
        trend.note(float(position), position, loss)
        jumps += [position] if trend.has_jumped else []
    return jumps


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_falls_and_varies_never_jumps(seed: int) -> None:
    rng = random.Random(seed)
    print("seed", seed)
    falling = [2 + 6 * 0.97**step + rng.gauss(0, 0.05) for step in range(2000)]
    assert followed(falling) == []


def test_one_unlucky_batch_is_no_jump() -> None:
    assert followed([3.0] * 40 + [9.0] + [3.0] * 40) == []


def test_a_loss_that_stays_high_has_jumped_until_that_is_usual() -> None:
    jumps = followed([3.0 + 0.01 * (step % 5) for step in range(60)] + [4.5] * 100)
    assert jumps[0] == 61
    assert jumps[-1] < 60 + 30


def test_a_little_more_than_a_loss_that_hardly_varies_is_no_jump() -> None:
    assert followed([3.0] * 60 + [3.2] * 20) == []


def test_nothing_is_said_of_the_first_losses() -> None:
    assert followed([8.0, 3.0] + [9.0] * (LEAST - 3)) == []


def test_silence_before_the_first_step_is_borne_longer_than_between_steps() -> None:
    trend = LossTrend(0.0)
    trend.note(0.0, 0, None)
    assert trend.stands_still_s(FIRST_STEP_S) is None
    assert trend.stands_still_s(FIRST_STEP_S + 1) == FIRST_STEP_S + 1
    trend.note(FIRST_STEP_S + 2, 1, 3.0)
    assert trend.stands_still_s(FIRST_STEP_S + 2 + STALL_S) is None
    trend.note(FIRST_STEP_S + 3, 2, 3.0)
    assert trend.stands_still_s(FIRST_STEP_S + 3 + STALL_S + 1) == STALL_S + 1


def test_slow_steps_may_take_long() -> None:
    trend = LossTrend(0.0)
    for step in range(5):
        trend.note(60.0 * step, step, 3.0)
    assert trend.stands_still_s(240.0 + 500) is None
    assert trend.stands_still_s(240.0 + 601) == 601


def told(step: int, loss: float | None, round_number: int = 1) -> LiveTraining:
    return LiveTraining(CycleId("c1"), round_number, "the cycle x", step, loss)


def test_a_jump_and_a_stall_are_told_with_what_they_are() -> None:
    runs = RunAlerts()
    for step in range(40):
        assert runs.look(float(step), [told(step, 3.0)]) == []
    runs.look(40.0, [told(40, 5.0)])
    (jump,) = runs.look(41.0, [told(41, 5.0)])
    assert (jump.code, jump.detail) == ("loss-spike", "5.000, from 3.000")
    codes = [finding.code for finding in runs.look(500.0, [told(41, 5.0)])]
    assert codes == ["stalled-step", "loss-spike"]


def test_a_loss_that_is_no_number_is_told_at_once() -> None:
    (found,) = RunAlerts().look(0.0, [told(1, float("nan"))])
    assert found.code == "loss-nan"


def test_another_round_and_one_that_ended_begin_anew() -> None:
    runs = RunAlerts()
    for step in range(40):
        runs.look(float(step), [told(step, 3.0)])
    assert runs.look(50.0, [told(1, 9.0, round_number=2)]) == []
    assert runs.look(51.0, []) == []
    assert runs.look(FIRST_STEP_S, [told(1, 9.0, round_number=2)]) == []


def test_a_loss_far_above_where_it_began_is_told_with_both() -> None:
    runs, found = RunAlerts(), []
    for step in range(60):
        found = runs.look(float(step), [told(step, 3.6 + 0.1 * step)])
    (high,) = (each for each in found if each.code == "loss-high")
    assert high.detail == "9.500, and began with 3.700"


def test_a_loss_that_falls_or_stays_is_not_far_above_where_it_began() -> None:
    for slope in (-0.02, 0.0, 0.005):
        runs = RunAlerts()
        for step in range(100):
            assert runs.look(float(step), [told(step, 3.6 + slope * step)]) == []


def test_a_loss_on_held_out_text_that_has_risen_for_good_is_told() -> None:
    run = LiveTraining(CycleId("c1"), 1, "the cycle x", 900, 3.0, risen_since_step=400)
    (risen,) = RunAlerts().look(0.0, [run])
    assert (risen.code, risen.detail) == ("held-out-risen", "step 400")
