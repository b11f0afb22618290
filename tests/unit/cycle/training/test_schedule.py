"""The learning rate's curve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.locations import config_folder

SIZE: ModelShape = parse_model((config_folder() / "models" / "1m.yaml").read_text(encoding="utf-8"))


def test_it_rises_in_a_line_stays_and_falls_in_a_line():
    curve = Schedule(peak=1.0, steps=10, warmup_steps=4, decay_steps=2)
    rates = [curve.learning_rate(step) for step in range(10)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5]


def test_every_step_that_trains_has_a_rate_above_nothing():
    curve = Schedule(peak=3e-3, steps=50, warmup_steps=5, decay_steps=50)
    assert all(0 < curve.learning_rate(step) <= 3e-3 for step in range(50))


def test_after_the_last_step_there_is_nothing():
    assert Schedule(1.0, 10, 1, 0).learning_rate(10) == 0.0


@pytest.mark.parametrize(("warmup_steps", "decay_steps"), [(0, 0), (1, 0)])
def test_without_warm_up_and_decay_it_is_level(warmup_steps: int, decay_steps: int):
    curve = Schedule(2.0, 5, warmup_steps, decay_steps)
    assert {curve.learning_rate(step) for step in range(5)} == {2.0}


def test_a_round_of_one_step_trains():
    assert Schedule(1.0, 1, 1, 1).learning_rate(0) == 1.0


def rates(plan: TrainPlan, first: int, end: int) -> list[float]:
    return [plan.schedule().learning_rate(step) for step in range(first, end)]


def with_decay(fraction: float) -> ModelShape:
    recipe = SIZE.recipe.model_copy(update={"decay_fraction": fraction})
    return SIZE.model_copy(update={"recipe": recipe})


@given(st.integers(20, 2_000), st.integers(2, 9), st.floats(0.0, 0.9))
def test_the_trunk_goes_on_at_one_rate_from_round_to_round(steps: int, number: int, share: float):
    first, later = (
        derive(with_decay(share), n, {"steps": steps}, goes_on=n > 1) for n in (1, number)
    )
    trunk = rates(first, 0, first.trunk_steps) + rates(later, 0, later.trunk_steps)
    assert trunk[: first.warmup_steps] == sorted(trunk[: first.warmup_steps])
    assert set(trunk[first.warmup_steps :]) == {first.learning_rate}, "no dip where rounds meet"


@given(st.integers(20, 2_000), st.integers(1, 3))
def test_a_rounds_branch_leaves_the_trunk_without_a_step_and_ends_near_nothing(
    steps: int, number: int
):
    plan = derive(SIZE, number, {"steps": steps}, goes_on=number > 1)
    branch = rates(plan, plan.trunk_steps, plan.steps)
    assert branch[0] == plan.learning_rate
    assert branch == sorted(branch, reverse=True)
    assert branch[-1] == pytest.approx(plan.learning_rate / plan.decay_steps)
    assert len(branch) == round(0.2 * steps)


def test_where_the_trunk_ends_a_checkpoint_is_due():
    plan = derive(SIZE, 2, goes_on=True)
    assert (plan.steps, plan.trunk_steps) == (460, 368)
    assert [s for s in range(1, 461) if plan.saves_after(s)] == [100, 200, 300, 368, 400, 460]
    assert [plan.is_on_trunk(step) for step in (1, 368, 369, 460)] == [True, True, False, False]
    assert not derive(SIZE, 1).is_on_trunk(1), "the rate still rises"
    alone = plan.model_copy(update={"keeps_trunk": False})
    assert not alone.saves_after(368)
    assert not alone.is_on_trunk(100)
    assert alone.hash() == plan.hash(), "it trains alike"
