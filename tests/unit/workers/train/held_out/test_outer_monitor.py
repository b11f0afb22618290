"""Islands that follow the loss of their merged weights on development text: real workers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from jupiterd.cycle.islands.outer_horizon import MergedLoss, decided, is_scored, places
from jupiterd.cycle.islands.outer_orders import OuterTraining
from jupiterd.cycle.training.horizon import Horizon, end_step, schedule
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.protocol.frames import CheckpointWritten, OuterStepArrived
from jupiterd.protocol.training_values import TrainingProgress
from jupiterd.workers import link
from jupiterd.workers.train.checkpoints.checkpoint import BEST_FILE, STATE_DIR
from jupiterd.workers.train.island import outer_rounds
from tests.support.workers.island_threads import Island
from tests.support.workers.outer_leader import OuterLeader, Rank, Step
from tests.support.workers.tiny_run import make_inputs
from tests.unit.workers.train.held_out.test_held_out_monitor import growing, inputs, loss_of
from tests.unit.workers.train.test_given_weights import given

__all__ = ["given", "inputs"]

SCORED = 5
EVERY = 7


@pytest.fixture(autouse=True)
def _every_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PROGRESS_INTERVAL_S", -1.0)
    monkeypatch.setattr(outer_rounds, "MOMENT_S", 0.2)
    monkeypatch.setattr(outer_rounds, "SAVE_AFTER_S", 0.0)


class DecidingLeader(OuterLeader):
    """Decides by the losses that islands tell, as a leader does."""

    def __init__(self, folder: Path, plan: TrainPlan, *, lag: int = 1) -> None:
        self.horizons: list[Horizon] = []
        self.scored: list[int] = []
        self._losses: list[MergedLoss] = []
        super().__init__(folder, plan, {"a": 3, "b": 3}, EVERY, lag=lag)

    def close_round(self) -> None:
        with self._changed:
            told = [pseudo_gradient for _, pseudo_gradient in self._ways.values()]
            self._losses = [
                MergedLoss(pseudo_gradient.scored_step, pseudo_gradient.held_out)
                for pseudo_gradient in told
            ]
            super().close_round()

    def _append(self, merged: Mapping[str, tuple[Path, int]]) -> None:
        before = self.line[-1] if self.line else Step(0, 0, 0)
        first_step = before.first_step + before.steps
        known = self.horizons[-1] if self.horizons else Horizon()
        horizon = decided(self.plan, known, self._losses, first_step)
        curve, batch = schedule(self.plan, horizon), self.plan.batch_sequences
        ended, at = horizon.ended, places(self.plan, horizon)
        training = OuterTraining(curve, batch, lag=self.lag, places=at, ended=ended)
        steps = training.steps_of_round(first_step, self.every_steps)
        closed = self.line[-self.lag] if len(self.line) >= self.lag else Step(0, 0, 0)
        contains = closed.first_step + closed.steps
        asked = max([horizon.step, *self.scored])
        is_due = is_scored(self.plan, horizon, contains, asked, SCORED, 6)
        self.horizons.append(horizon)
        self.scored.append(contains if is_due else 0)
        self.line.append(self._ordered(Step(len(self.line), first_step, steps, merged)))

    def _arrived(self, rank: Rank, step: Step) -> OuterStepArrived:
        arrived = super()._arrived(rank, step)
        order = replace(arrived.order, scored_step=self.scored[step.number])
        return replace(arrived, order=order, horizon=self.horizons[step.number].to_plain())


def last_of(island: Island) -> TrainingProgress:
    return island.rank.said(CheckpointWritten)[-1].progress


def model(island: Island, step: int) -> dict[str, np.ndarray]:
    return load_file(island.checkpoint(step) / "model.safetensors")


@pytest.mark.parametrize(
    "lag",
    [pytest.param(1, id="blocking"), pytest.param(2, id="overlapped", marks=pytest.mark.full)],
)
def test_where_the_loss_rises_islands_end_and_their_best_merged_weights_are_what_counts(
    inputs: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str], lag: int
) -> None:
    plan = growing(steps=420, decay_steps=84, least_steps=280)
    leader = DecidingLeader(tmp_path, plan, lag=lag)
    islands = [Island(leader, name, inputs) for name in ("a", "b")]
    for island in islands:
        assert island.ended().error is None
    ends = [Horizon.of(last_of(island).horizon) for island in islands]
    assert ends[0] == ends[1]
    (horizon, _), end = ends, end_step(plan, ends[0])
    assert 0 < horizon.best_step < horizon.decay_from < end < plan.least_steps
    assert last_of(islands[0]).step == leader.line[-1].first_step == end
    one, other = (model(island, end) for island in islands)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    loss = loss_of(islands[0].checkpoint(end), inputs)
    assert loss == pytest.approx(horizon.best_loss, abs=1e-5)
    log = capfd.readouterr().out
    assert "The held-out loss has risen for good: the learning rate falls" in log
    assert f"best at step {horizon.best_step}" in log


@pytest.mark.full
def test_an_island_that_begins_again_has_the_best_weights_that_were_merged_before(
    inputs: dict[str, str], tmp_path: Path
) -> None:
    plan = growing(steps=420, decay_steps=84, least_steps=280)
    leader = DecidingLeader(tmp_path / "whole", plan)
    a, b = (Island(leader, name, inputs) for name in ("a", "b"))
    assert (a.ended().error, b.ended().error) == (None, None)
    horizon, end = Horizon.of(last_of(a).horizon), last_of(a).step
    made = [told for told in a.rank.said(CheckpointWritten) if told.progress.step < end]
    late = next(
        told for told in made if told.progress.horizon.get("best_step") == horizon.best_step
    )
    start = a.rank.folder / late.path
    assert (start / STATE_DIR / BEST_FILE).is_file()
    again = late_island(leader, inputs | {"checkpoint": str(start)}, late)
    assert again.ended().error is None
    assert Horizon.of(last_of(again).horizon) == horizon
    ended, before = model(again, end), model(b, end)
    assert all(np.array_equal(ended[name], before[name]) for name in ended)


def late_island(
    leader: DecidingLeader, inputs: Mapping[str, str], late: CheckpointWritten
) -> Island:
    """Island `a` that goes on from a checkpoint, and takes all outer steps that it has missed."""
    whole = leader.task

    def task(island: str, given: Mapping[str, str]) -> Any:
        return whole(island, given, horizon=dict(late.progress.horizon))

    leader.task = task  # pyright: ignore[reportAttributeAccessIssue]
    return Island(leader, "a", inputs)


@pytest.mark.full
def test_without_development_text_islands_take_four_passes_and_one_round(tmp_path: Path) -> None:
    plan = growing()
    leader = DecidingLeader(tmp_path, plan)
    islands = [Island(leader, name, make_inputs(tmp_path / name)) for name in ("a", "b")]
    for island in islands:
        assert island.ended().error is None
    horizon = Horizon.of(last_of(islands[0]).horizon)
    assert (horizon.best_step, last_of(islands[0]).step) == (0, end_step(plan, horizon))
    assert 0 < horizon.decay_from - plan.least_trunk_steps <= EVERY


@pytest.mark.full
def test_islands_know_what_they_were_given(given: dict[str, str], tmp_path: Path) -> None:
    plan = growing()
    leader = DecidingLeader(tmp_path, plan)
    whole = leader.task

    def task(island: str, inputs: Mapping[str, str]) -> Any:
        return whole(island, inputs, is_tuning=True)

    leader.task = task  # pyright: ignore[reportAttributeAccessIssue]
    islands = [Island(leader, name, given) for name in ("a", "b")]
    for island in islands:
        assert island.ended().error is None
    ends = [Horizon.of(last_of(island).horizon) for island in islands]
    assert ends[0] == ends[1]
    assert ends[0].best_step == 0
    assert ends[0].best_loss == ends[0].first_loss > 0
    assert ends[0].ends_worse
    first = load_file(Path(given["weights"]) / "model.safetensors")
    for island in islands:
        last = model(island, last_of(island).step)
        assert all(np.array_equal(first[name], last[name]) for name in first)
