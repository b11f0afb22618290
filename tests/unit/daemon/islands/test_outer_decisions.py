"""A run of islands whose steps follow its data: what is decided is in the outer steps."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cycle.islands import outer_horizon
from jupiterd.cycle.runs.run_settings import FROM_DATA
from jupiterd.cycle.training import held_out_measures
from jupiterd.cycle.training.horizon import Horizon, end_step
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.catalog.outer_step_mapping import open_rounds
from jupiterd.daemon.leader.pseudo_gradients import ReportedPseudoGradient
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    PseudoGradientStored,
)
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.cluster.building import CYCLE
from tests.support.daemon.two_nodes import until
from tests.unit.daemon.islands.test_island_coordinator import (
    EVERY,
    SETTINGS,
    coordinating,
    islands,
    line,
    shown,
    trains,
)

MODEL = ArtifactId("a" * 64)


@pytest.fixture(autouse=True)
def _steps_follow_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SETTINGS, "max_steps")
    monkeypatch.setitem(SETTINGS, "steps_from", FROM_DATA)
    monkeypatch.setattr(held_out_measures, "LEAST_SEQUENCES", 24)


def loss_at(step: int) -> float:
    """The loss on held-out text falls to step 110."""
    return 4 + abs(step - 110) / 1000


def tell(leading: TermServices) -> None:
    """Let both islands say what they have scored since they began the round that is open."""
    ((name, taken),) = open_rounds(leading.term.cycle(CYCLE))
    step = taken.scored_step
    scored = {"scored_step": step, "held_out": loss_at(step) if step else 0.0}
    for island in map(CycleId, taken.batches):
        tokens = taken.steps * taken.batches[island] * 64
        way = PseudoGradientStored(
            ArtifactId(island * 4), PseudoGradient(name, tokens, 1.0, 10.0, **scored)
        )
        leading.pseudo_gradients.report(
            island, ReportedPseudoGradient(way, leading.term.self_id, now_s())
        )


async def walk(leading: TermServices, rounds: int) -> list[OuterStepTaken]:
    """Close so many rounds, or all that there are."""
    for _ in range(rounds):
        before = len(line(leading))
        if not line(leading)[-1].steps:
            break
        tell(leading)
        await until(lambda before=before: len(line(leading)) > before)
    return line(leading)


def plan_of(leading: TermServices) -> TrainPlan:
    return training_of(leading.term.state, CYCLE).plan


async def test_islands_take_more_than_four_passes_while_the_loss_of_merged_weights_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _):
        async with coordinating(leading):
            await walk(leading, 3)
            plan = plan_of(leading)
            assert (plan.least_steps, plan.steps, plan.extends_by_steps) == (50, 198, 37)
            places = {3, 40, 77, 114}
            await until(lambda: "held_out" in shown(leading)["values"])
        async with coordinating(leading) as task:  # another leader goes on with the same
            await walk(leading, 99)
            taken = line(leading)
            assert places <= {step.first_step for step in taken}
            assert places <= {step.scored_step for step in taken}
            horizon = Horizon.of(taken[-1].horizon)
            assert 151 <= horizon.decay_from <= 151 + EVERY, "at 114 the loss was lower than at 77"
            assert horizon.best_step == 114
            assert taken[-1].first_step == end_step(plan, horizon) == taken[-1].scored_step
            assert taken[-1].cursor == taken[-1].first_step * plan.batch_sequences
            one = islands(leading)[0].cycle
            told = Horizon.of(taken[-1].horizon).with_loss(taken[-1].first_step, 4.2).to_plain()
            made = CheckpointCommitted(
                one, 1, "", MODEL, 4, taken[-1].first_step, 9, 9, 2.5, is_final=True
            )
            await leading.term.record(replace(made, horizon=told))
            await task
            final = leading.term.cycle(CYCLE).last_checkpoint(1)
            assert final is not None
            assert final.horizon["best_step"] == 114


async def test_weights_that_no_text_may_decide_about_are_scored_no_more_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "loss_at", lambda _: 0.0)
    monkeypatch.delitem(SETTINGS, "steps_from")
    monkeypatch.setitem(SETTINGS, "max_steps", 12 * EVERY)
    for module in (outer_horizon, held_out_measures):
        monkeypatch.setattr(module, "least_interval", lambda *_: 4 * EVERY)
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading) as task:
        taken = await walk(leading, 99)
        task.cancel()
        scored = [step.scored_step for step in taken if step.scored_step]
        assert scored == [4 * EVERY, 8 * EVERY, 12 * EVERY]


async def test_what_an_island_scored_whose_way_does_not_count_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        await walk(leading, 1)
        (name, taken) = open_rounds(leading.term.cycle(CYCLE))[0]
        assert taken.scored_step == 3
        one, other = map(CycleId, taken.batches)
        for island, norm, loss in ((one, float("inf"), 1.0), (other, 1.0, 4.5)):
            way = PseudoGradient(name, 64, norm, 10.0, scored_step=3, held_out=loss)
            said = PseudoGradientStored(ArtifactId(island * 4), way)
            leading.pseudo_gradients.report(
                island, ReportedPseudoGradient(said, leading.term.self_id, now_s())
            )
        await until(lambda: len(line(leading)) > 2)
        assert Horizon.of(line(leading)[-1].horizon).best_loss == 4.5
