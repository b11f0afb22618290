"""What is predicted when a gang or islands begin is kept in the ledger, and shown from there."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import Fact, OuterStepTaken
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.planning.predicted_throughput import PREDICTED
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.daemon.gangs import gang_supervisor, recorded_predictions
from jupiterd.daemon.gangs.checkpoint_lineage import CheckpointLineage
from jupiterd.daemon.gangs.gang_progress import GangProgress
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.recorded_predictions import with_prediction
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.ids import ArtifactId, NodeId
from tests.support.cluster.building import CYCLE, opened, training
from tests.support.daemon import one_rank
from tests.support.daemon.recording_term import Recording, attempt_on
from tests.support.daemon.two_nodes import until
from tests.unit.daemon.islands.test_island_coordinator import (
    ELSEWHERE,
    coordinating,
    islands,
    line,
    say,
    shown,
    trains,
)
from tests.unit.daemon.leader.test_going_on import MACHINE
from tests.unit.daemon.planning.test_layout_inputs import EARLIER, attempt, leading_of, shape
from tests.unit.daemon.planning.test_rank_order import A, B

KNOWN = (*attempt(1, (A,), 40_000), *attempt(2, (B,), 80_000))
"""A does 1,000 tokens in a second, B 2,000."""


def plan() -> TrainPlan:
    return derive(shape(), 1)


def term(*facts: Fact) -> TermServices:
    """A term that knows a run which is about to train, too."""
    leading = leading_of(*KNOWN, training(), *facts)
    leading.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    return leading


def trained(round_number: int = 1) -> TrainedRound:
    return TrainedRound(CYCLE, round_number, shape(), plan())


def gang_plan(*gang: NodeId, backend: str = "gloo") -> GangPlan:
    return GangPlan(3, EngineChoice(TORCH, gang, "as asked", backend), "", 0, 0.0)


def predicted(leading: TermServices, *gang: NodeId, round_number: int = 1) -> float:
    found = with_prediction(
        leading.term, leading.fleet_view, trained(round_number), gang_plan(*gang)
    )
    return found.predicted_tokens_per_s


def test_a_gang_is_predicted_once_in_a_round_and_another_one_anew() -> None:
    before = replace(opened(7), gang=(B, A), engine="torch/gloo", predicted_tokens_per_s=777.0)
    assert 2_500 < predicted(term(), A, B) < 3_000
    assert predicted(term(before), A, B) == 777
    assert predicted(term(before), A) == 1_000
    assert 2_500 < predicted(term(before), A, B, round_number=2) < 3_000
    assert 2_500 < predicted(term(replace(before, engine="mlx/ring")), A, B) < 3_000
    assert 2_500 < predicted(term(replace(before, predicted_tokens_per_s=0.0)), A, B) < 3_000


def test_what_nobody_can_predict_is_kept_as_nothing() -> None:
    leading = term()
    leading.machines.hardware_of = {}.get
    assert predicted(leading, A, B) == 0.0


def test_an_attempt_keeps_what_was_predicted_of_it_and_whoever_adopts_it_shows_the_same() -> None:
    leading = term()
    begun = with_prediction(leading.term, leading.fleet_view, trained(), gang_plan(A, B))
    kept = CheckpointLineage(leading.term, leading.reach, CYCLE, 1).opened(begun)
    assert kept.predicted_tokens_per_s == begun.predicted_tokens_per_s > 0
    adopted = GangPlan.of(replace(kept, predicted_tokens_per_s=777.0))
    orders = RankOrders(leading.term, leading.machines, leading.reach, leading.calls, trained())
    GangProgress(leading.board, CYCLE, orders).begin(adopted)
    (running,) = leading.board.to_plain(1.0)
    assert running["values"]["predicted_tokens_per_s"] == 777


async def test_the_ledger_has_what_is_predicted_of_a_gang_before_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = Recording()
    supervisor = attempt_on(recording, "")

    async def prepared(*_: object) -> GangPlan:
        return one_rank.LAUNCH

    async def nothing(*_: object) -> dict[str, ArtifactId]:
        return {}

    monkeypatch.setattr(supervisor._preflight, "prepared_once_resumed", prepared)
    monkeypatch.setattr(RankOrders, "inputs", nothing)
    monkeypatch.setattr(gang_supervisor, "whole_start", nothing)
    monkeypatch.setattr(recorded_predictions, "predicted_tokens_per_s", lambda *_: 777.04)
    monkeypatch.setattr(supervisor, "_run_gang", lambda *_: None)
    monkeypatch.setattr(supervisor, "_run_to_end", nothing)
    await supervisor._run_attempt(TrainRound(ArtifactId("1" * 64), ArtifactId("2" * 64)))
    (kept,) = recording.recorded
    assert isinstance(kept, AttemptOpened)
    assert kept.predicted_tokens_per_s == 777.0


def predictions(taken: list[OuterStepTaken]) -> list[float]:
    return [step.predicted_tokens_per_s for step in taken]


async def test_islands_are_predicted_when_they_begin_and_keep_that_while_they_train_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch, second=ELSEWHERE) as (leading, _):
        machine = replace(MACHINE, engines=("torch",))
        both = frozenset({leading.term.self_id, ELSEWHERE})
        leading.machines.hardware_of = lambda _: machine
        leading.machines.alive = lambda: both
        await leading.term.record(
            replace(training(), cycle=EARLIER),
            *attempt(1, (leading.term.self_id,), 120_000, "mlx"),
            *attempt(2, (ELSEWHERE,), 40_000),
        )
        async with coordinating(leading):
            first, *_ = predictions(line(leading))
            assert 2_000 < first < 4_000, "3,000 and 1,000, less their exchanges"
            while (last := line(leading)[-1]).steps:
                await until(lambda: shown(leading)["values"].get(PREDICTED) == first)
                for part in islands(leading):
                    say(leading, part.cycle, elapsed_s=0.01)
                await until(lambda last=last: line(leading)[-1] != last)
            assert [step.steps for step in line(leading)] == [20, 20, 10, 0]
            assert predictions(line(leading)) == [first, first, first, 0]


async def test_of_islands_that_were_never_measured_nothing_is_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        assert predictions(line(leading)) == [0.0]
