"""How the leader forms a gang anew: without whom, on which engine, and how often."""

import asyncio
from dataclasses import replace

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.planning.backends import NCCL
from jupiterd.cluster.planning.engines import MLX, TORCH, EngineChoice, choose_engine
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.daemon.gangs import attempt_retries, scale_candidates
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.daemon.gangs.scale_candidates import ScaleCandidates
from jupiterd.daemon.gangs.straggler_watch import StragglerWatch
from jupiterd.daemon.planning.gang_plan import GangPlan, nccl_failure
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import (
    BadRouteError,
    ModelTooLargeError,
    NcclFailedError,
    OutOfMemoryError,
    WorkFailedError,
)
from jupiterd.ids import ArtifactId, NodeId
from tests.support.daemon.one_rank import CRASH, CYCLE, LAUNCH, PLAN, A, B
from tests.support.daemon.recording_term import Recording, attempt_on

C = NodeId("c")
TIMEOUT_S = 5.0


async def test_after_a_crash_in_nccl_the_next_attempt_uses_gloo_and_says_why() -> None:
    term = Recording()
    supervisor = attempt_on(term, "")
    gang_plan = replace(LAUNCH, choice=EngineChoice(TORCH, (A, B), "as asked", NCCL))

    async def crash() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(WorkFailedError("alpha: the train worker ended with status 1")))
            group.create_task(fail(NcclFailedError(CRASH.message)))

    async def fail(error: WorkFailedError) -> None:
        raise error

    with pytest.raises(ExceptionGroup):
        await supervisor._run_to_end(gang_plan, crash())
    (closed,) = (fact for fact in term.recorded if isinstance(fact, AttemptClosed))
    assert (closed.code, closed.reason) == ("nccl-failed", CRASH.message)
    machine = Hardware("Linux", "x86_64", "cpu", 8, 1 << 34, (), (TORCH,), devices=("cuda:0",))
    failure = nccl_failure(term.state)
    choice = choose_engine(TORCH, {A: machine, B: machine}, nccl_failure=failure)
    assert choice.label == "torch/gloo"
    assert "gloo, since NCCL failed in attempt 3" in choice.reason


async def test_memory_may_run_out_as_often_as_there_is_less_to_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempt_retries, "RETRY_S", 0.0)
    monkeypatch.setattr(attempt_retries, "MAX_RETRY_S", 0.0)
    supervisor = attempt_on(Recording(), "")
    supervisor._micro_batch_sizes = MicroBatchSizes(64)
    tried: list[int] = []

    async def none_is_left() -> bool:
        return False

    async def run_out(_step: TrainRound) -> None:
        tried.append(supervisor._micro_batch_sizes.of((A,))[0])
        supervisor._micro_batch_sizes.halve(A, "alpha")
        raise OutOfMemoryError("out of memory")

    monkeypatch.setattr(supervisor, "_take_over_open_attempt", none_is_left)
    monkeypatch.setattr(supervisor, "_run_attempt", run_out)
    with pytest.raises(ModelTooLargeError):
        await supervisor.train(TrainRound(ArtifactId("s"), ArtifactId("t")))
    assert tried == [64, 32, 16, 8, 4, 2, 1]


async def test_a_gang_that_was_left_by_one_is_formed_anew_at_once_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempt_retries, "RETRY_S", 3600.0)
    supervisor = attempt_on(Recording(), "")
    tried: list[frozenset[NodeId]] = []

    async def none_is_left() -> bool:
        return False

    async def cant_be_met(_step: TrainRound) -> None:
        tried.append(supervisor._scale_policy.left_out)
        if B not in supervisor._scale_policy.left_out:
            supervisor._scale_policy.leave_out(B, now_s())
            raise BadRouteError("alpha can't reach beta")
        await supervisor._term.record(
            CheckpointCommitted(CYCLE, 1, "", ArtifactId("k"), 1, 100, 1, 1, 1.0, True)
        )

    monkeypatch.setattr(supervisor, "_take_over_open_attempt", none_is_left)
    monkeypatch.setattr(supervisor, "_run_attempt", cant_be_met)
    async with asyncio.timeout(TIMEOUT_S):
        await supervisor.train(TrainRound(ArtifactId("s"), ArtifactId("t")))
    assert tried == [frozenset(), {B}]


@pytest.mark.parametrize("has_trained", [True, False])
async def test_who_was_left_out_joins_again_where_all_trained_on_another_engine_before(
    has_trained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two Macs go on as an MLX ring where a Linux machine was left out; with it, it was torch."""
    before = [AttemptOpened(CYCLE, 1, 1, (A, B, C), "torch/gloo", "", 0)] if has_trained else []
    term = Recording(*before)
    supervisor = attempt_on(term, "")
    plan = PLAN.model_copy(update={"batch_sequences": 8})
    supervisor._trained_round = replace(supervisor._trained_round, plan=plan)
    all_three = EngineChoice(TORCH, (A, B, C), "not all are Macs")
    asked: list[tuple[str, frozenset[NodeId]]] = []

    async def ready(wanted: GangPlan, newcomers: frozenset[NodeId]) -> frozenset[NodeId]:
        asked.append((wanted.choice.engine, newcomers))
        return newcomers

    monkeypatch.setattr(scale_candidates, "choose", lambda *_, **__: all_three)
    monkeypatch.setattr(supervisor._preflight, "ready", ready)
    of = supervisor._trained_round
    stragglers = StragglerWatch(term.services, of)
    members = ScaleCandidates(term.services, of, supervisor._preflight, LAUNCH, stragglers)
    assert members.eligible() == ({A, B, C} if has_trained else {A, B})
    await members.bring(frozenset({C}), ())
    assert asked == [(TORCH if has_trained else MLX, {C})]
