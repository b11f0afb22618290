"""Where a training ends follows from the losses on held-out text, and from nothing else."""

import math
from collections.abc import Callable, Iterable

import pytest

from jupiterd.cycle.runs.fitted_plan import fitted_plan
from jupiterd.cycle.training.horizon import (
    MOST_WORSE,
    Horizon,
    end_step,
    expected_steps,
    is_on_trunk,
    is_over,
    schedule,
)
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.cycle.training.step_budget import first_budget
from tests.support.cycle.presets import ONE_MILLION, plan_of_one_million

SEQUENCES = 160
"""A pass takes 40 steps: four take 160, sixteen 640."""


def growing() -> TrainPlan:
    plan = plan_of_one_million()
    budget = first_budget(plan.steps, plan.batch_sequences, SEQUENCES)
    return fitted_plan(plan, ONE_MILLION.recipe, budget, SEQUENCES)


def places(plan: TrainPlan) -> list[int]:
    return [step for step in range(1, plan.steps + 1) if plan.decides_after(step)]


def walked(plan: TrainPlan, loss: Callable[[int], float | None]) -> Horizon:
    """Measure at every place, at the step it is compared with, and every tenth step."""
    horizon, step = Horizon(), 0
    while not is_over(plan, horizon, step):
        step += 1
        is_place = plan.decides_after(step) or plan.is_compared_after(step)
        if is_place or step % 10 == 0 or is_over(plan, horizon, step):
            horizon = horizon.measured(plan, step, loss(step))
    return horizon


def test_a_plan_grows_by_passes_between_four_and_sixteen() -> None:
    plan = growing()
    assert (plan.least_steps, plan.steps, plan.extends_by_steps) == (160, 640, 40)
    assert places(plan)[:3] == [128, 168, 208]
    assert places(plan)[-1] == plan.trunk_steps == 512


def test_as_long_as_the_loss_falls_it_grows_to_the_last_place() -> None:
    plan = growing()
    horizon = walked(plan, lambda step: 5 - step / 1000)
    assert (horizon.decay_from, end_step(plan, horizon)) == (512, 640)
    assert horizon.best_step == 640


def test_where_the_loss_falls_no_more_the_trunk_ends_and_the_rate_falls() -> None:
    plan = growing()
    horizon = walked(plan, lambda step: 5 - min(step, 180) / 1000)
    assert horizon.decay_from == 248, "at 208 it was lower than at 168, at 248 no more"
    assert end_step(plan, horizon) == 248 + 62
    curve = schedule(plan, horizon)
    assert curve.learning_rate(247) == plan.learning_rate
    assert curve.learning_rate(248 + 61) == pytest.approx(plan.learning_rate / 62)


def test_four_passes_are_taken_whatever_the_loss_does() -> None:
    plan = growing()
    horizon = walked(plan, lambda _: 5.0)
    assert (horizon.decay_from, end_step(plan, horizon)) == (128, 160)
    assert not horizon.has_risen


def test_a_first_place_with_none_before_it_is_compared_with_the_last_measurement() -> None:
    plan = growing().model_copy(update={"least_steps": 40})
    assert not any(map(plan.is_compared_after, range(plan.steps)))
    rising = walked(plan, lambda step: 5 + step / 10_000)
    assert (rising.decay_from, end_step(plan, rising)) == (32, 40)
    falling = walked(plan, lambda step: 5 - min(step, 50) / 1000)
    assert falling.decay_from == 112, "at 72 it was lower than at 32"


def test_where_it_rises_for_good_the_rate_falls_at_once_and_training_ends_early() -> None:
    plan = growing()
    horizon = walked(plan, lambda step: 5 + abs(step - 40) / 100)
    assert horizon.best_step == 40
    assert horizon.decay_from == 40 + 10 * MOST_WORSE
    assert horizon.ended == end_step(plan, horizon) == 40 + 10 * (1 + MOST_WORSE)
    assert horizon.ended < plan.least_steps


def test_a_rise_that_passes_ends_nothing() -> None:
    plan = growing()
    horizon = walked(plan, lambda step: 6.0 if step in {50, 60} else 5 - step / 1000)
    assert end_step(plan, horizon) == plan.steps


def test_without_held_out_text_four_passes_are_taken() -> None:
    plan = growing()
    horizon = walked(plan, lambda _: None)
    assert (end_step(plan, horizon), horizon.best_step) == (160, 0)


def test_steps_that_were_asked_for_are_taken_even_where_the_loss_rises() -> None:
    plan = plan_of_one_million()
    horizon = walked(plan, lambda step: 5 + step / 100)
    assert horizon.has_risen
    assert (end_step(plan, horizon), horizon.best_step, horizon.ended) == (plan.steps, 10, 0)
    assert schedule(plan, horizon) == plan.schedule()


def test_whoever_goes_on_from_any_step_decides_the_same() -> None:
    plan = growing()

    def loss(step: int) -> float:
        return 5 - min(step, 300) / 1000 + math.sin(step) / 500

    whole = walked(plan, loss)
    for cut in range(10, end_step(plan, whole), 10):
        horizon = Horizon()
        for step in (s for s in _measured(plan) if s <= end_step(plan, whole)):
            if step > cut and horizon.step and horizon.step <= cut:
                horizon = Horizon.of(horizon.to_plain())
            horizon = horizon.measured(plan, step, loss(step))
        assert horizon.decay_from == whole.decay_from


def _measured(plan: TrainPlan) -> Iterable[int]:
    return sorted({*places(plan), *range(10, plan.steps, 10), places(plan)[0] - 40})


def test_what_came_over_the_wire_and_makes_no_sense_is_nothing() -> None:
    assert Horizon.of({"step": math.nan, "best_loss": math.inf, "other": 3.0}) == Horizon()


def test_people_see_the_steps_up_to_the_next_place() -> None:
    plan = growing()
    assert expected_steps(plan, Horizon(), 1) == 160
    assert expected_steps(plan, Horizon(), 129) == 210
    assert expected_steps(plan, Horizon(), 512) == 640
    assert expected_steps(plan, Horizon(decay_from=168), 180) == 210
    assert expected_steps(plan_of_one_million(), Horizon(), 1) == 780


def test_a_later_round_goes_on_from_where_the_trunk_has_ended() -> None:
    plan, horizon = growing(), Horizon(decay_from=168)
    assert is_on_trunk(plan, horizon, 168)
    assert not is_on_trunk(plan, horizon, 169)
    assert plan.saves_after(168), "there is a checkpoint of it"


def test_plans_of_different_growth_train_differently_and_old_plans_hash_as_before() -> None:
    plan = growing()
    assert plan.hash() != plan.model_copy(update={"extends_by_steps": 80}).hash()
    assert "extends_by_steps" not in plan_of_one_million().what_counts()
    assert "extends_by_steps" not in plan_of_one_million().to_plain()
    assert TrainPlan.from_plain(plan.to_plain()) == plan
