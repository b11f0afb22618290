"""Members are asked before a gang is formed; those that refuse are done without."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import needs_on
from jupiterd.daemon.gangs import gang_preflight
from jupiterd.daemon.gangs.gang_preflight import LEFT_OUT_S, GangPreflight
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.errors import (
    DeviceBusyError,
    DeviceFullError,
    DrainedError,
    JupiterError,
    ModelTooLargeError,
    PeerUnreachableError,
    TimedOutError,
)
from jupiterd.ids import CycleId, NodeId
from jupiterd.rpc import peer_pb2
from tests.support.daemon.one_rank import CYCLE
from tests.support.daemon.term_parts import FakeCalls, FakeMachines, FakeTerm
from tests.unit.cycle.training.test_memory import PRESETS, plan

A, B = NodeId("a" * 32), NodeId("b" * 32)
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, devices=("cpu",))
USUAL = 8
FULL = DeviceFullError("beta: cpu has 0.1 GB free, and a gang needs 0.4 GB there at the least")

PreflightReply = tuple[int, str] | JupiterError


class Asking(FakeCalls):
    """As much of a term of leading as asking takes: each node answers as it was told to."""

    machine = MACHINE

    def __init__(self, answers: Mapping[NodeId, PreflightReply]) -> None:
        super().__init__()
        self.answers = answers
        self.requests: list[tuple[NodeId, peer_pb2.PrepareRanksRequest]] = []
        self.machines = FakeMachines({A: self.machine, B: self.machine}, {A: "alpha", B: "beta"})

    @property
    def passed_over(self) -> set[NodeId]:
        return {*self.machines.passed_over}

    async def prepare(self, node: NodeId, request: peer_pb2.PrepareRanksRequest) -> tuple[int, str]:
        self.requests.append((node, request))
        answer = self.answers[node]
        if isinstance(answer, JupiterError):
            raise answer
        return answer


def preparing(asking: Asking) -> GangPreflight:
    trained = TrainedRound(CYCLE, 1, PRESETS["1m"], plan(PRESETS["1m"]))
    sizes = MicroBatchSizes(USUAL)
    term = FakeTerm()
    term.know(CYCLE)
    return GangPreflight(term, ProgressBoard(), asking.machines, asking, trained, sizes)


def launch_of(*gang: NodeId) -> GangPlan:
    return GangPlan(1, EngineChoice(TORCH, gang, "as asked"), "", 0, 0.0)


def all_but(without: object) -> GangPlan:
    gang = [node for node in (A, A, B) if node not in cast("frozenset[NodeId]", without)]
    if not gang:
        raise PeerUnreachableError("no node that is alive can train")
    return launch_of(*gang)


async def test_each_node_is_asked_once_with_what_each_micro_batch_needs():
    term = Asking({A: (USUAL, ""), B: (USUAL, "")})
    gang_plan = await preparing(term).prepared(all_but)
    assert (gang_plan.gang, gang_plan.micro_batches) == ((A, A, B), (USUAL,) * 3)
    assert gang_plan.choice.reason == "as asked"
    (alpha, request), (beta, other) = term.requests
    assert (alpha, request.ranks, beta, other.ranks) == (A, 2, B, 1)
    assert request.checkpoint_bytes == 12 * parameter_count(PRESETS["1m"])
    needs = [(need.micro_batch, need.size_bytes) for need in request.needs]
    assert [size for size, _ in needs] == [8, 4, 2, 1]
    assert [needed for _, needed in needs] == sorted((n for _, n in needs), reverse=True)


async def test_nodes_of_one_machine_are_asked_for_what_they_take_of_it_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def asked_of(machine: Hardware) -> dict[NodeId, int]:
        monkeypatch.setattr(Asking, "machine", machine)
        term = Asking({A: (USUAL, ""), B: (USUAL, "")})
        await preparing(term).prepared(lambda _: launch_of(A, B))
        return {node: request.needs[0].size_bytes for node, request in term.requests}

    apart, together = await asked_of(MACHINE), await asked_of(replace(MACHINE, host="one"))
    assert together == {node: 2 * needed for node, needed in apart.items()}


async def test_of_two_nodes_on_one_machine_one_trains_where_both_have_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Asking, "machine", replace(MACHINE, host="one"))
    term = Asking({})
    needs = [size for _, size in needs_of_one()]

    async def prepare(node: NodeId, request: peer_pb2.PrepareRanksRequest) -> tuple[int, str]:
        term.requests.append((node, request))
        if request.needs[0].size_bytes > needs[0]:
            raise ModelTooLargeError("cpu has too little for two")
        return USUAL, ""

    monkeypatch.setattr(term, "prepare", prepare)
    gang_plan = await preparing(term).prepared(lambda gone: launch_of(*sorted({A, B} - gone)))
    assert gang_plan.gang == (A,)
    assert [node for node, _ in term.requests] == [A, B, A]


def needs_of_one() -> list[tuple[int, int]]:
    device = DeviceAbilities("torch", "cpu", MACHINE.ram_bytes, can_compile=True)
    return needs_on(device, PRESETS["1m"], plan(PRESETS["1m"]), USUAL)


async def test_where_all_are_drained_a_gang_is_planned_once_one_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []
    is_over = False

    async def wait_out(_board: ProgressBoard, _cycle: CycleId, trouble: str) -> None:
        shown.append(trouble)

    def drained_twice(_without: object) -> GangPlan:
        if len(shown) < 2:
            raise DrainedError("alpha is drained")
        return launch_of(A)

    monkeypatch.setattr(gang_preflight, "wait_out", wait_out)
    preparation = preparing(Asking({A: (USUAL, "")}))
    gang_plan = await preparation.prepared_once_resumed(drained_twice, lambda: is_over)
    assert (gang_plan.gang, shown) == ((A,), ["alpha is drained"] * 2)
    shown.clear()
    is_over = True
    with pytest.raises(DrainedError):
        await preparation.prepared_once_resumed(drained_twice, lambda: is_over)


async def test_a_node_with_less_room_takes_fewer_at_a_time():
    gang_plan = await preparing(
        Asking({A: (USUAL, ""), B: (2, "micro batches of 2: why")})
    ).prepared(all_but)
    assert gang_plan.micro_batches == (USUAL, USUAL, 2)
    assert gang_plan.choice.reason == "as asked; beta: micro batches of 2: why"


async def test_the_gang_forms_without_a_node_that_is_too_small():
    gang_plan = await preparing(Asking({A: (USUAL, ""), B: FULL})).prepared(all_but)
    assert gang_plan.gang == (A, A)
    assert gang_plan.choice.reason == f"as asked; left out: {FULL.message}"


async def test_a_node_that_refused_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch):
    now_s = 100.0
    monkeypatch.setattr(gang_preflight, "now_s", lambda: now_s)
    term = Asking({A: (USUAL, ""), B: FULL})
    preparation = preparing(term)
    await preparation.prepared(all_but)
    assert preparation.left_out == {B}
    now_s += LEFT_OUT_S
    term.answers = {A: (USUAL, ""), B: (USUAL, "")}
    assert (await preparation.prepared(all_but)).gang == (A, A, B)


async def test_where_all_refuse_the_reason_is_told_and_waiting_may_help():
    too_large = ModelTooLargeError("alpha: too small")
    with pytest.raises(DeviceFullError) as refused:
        await preparing(Asking({A: too_large, B: FULL})).prepared(all_but)
    assert refused.value is FULL


async def test_where_all_are_too_small_for_ever_nobody_waits():
    small = ModelTooLargeError("too small")
    with pytest.raises(ModelTooLargeError):
        await preparing(Asking({A: small, B: small})).prepared(all_but)


async def test_a_gang_is_not_disturbed_for_a_newcomer_that_would_refuse():
    preparation = preparing(Asking({A: (USUAL, ""), B: DeviceBusyError("held by another gang")}))
    assert await preparation.ready(launch_of(A, B), frozenset({A, B})) == {A}
    assert preparation.left_out == {B}


async def test_a_newcomer_is_asked_for_all_of_its_devices():
    term = Asking({B: (USUAL, "")})
    await preparing(term).ready(launch_of(A, B), frozenset({B}))
    ((_, request),) = term.requests
    assert request.ranks == 0, "else one whose second GPU is held would stop the gang in vain"


@pytest.mark.parametrize("error", [PeerUnreachableError, TimedOutError])
async def test_a_node_that_does_not_answer_keeps_nobody_else_from_training(
    error: type[JupiterError],
):
    term = Asking({A: (USUAL, ""), B: error("beta says nothing")})
    assert (await preparing(term).prepared(all_but)).gang == (A, A)
    assert term.passed_over == ({B} if error is PeerUnreachableError else set())


@pytest.mark.parametrize("error", [PeerUnreachableError, TimedOutError])
async def test_a_newcomer_that_does_not_answer_costs_the_gang_nothing(error: type[JupiterError]):
    preparation = preparing(Asking({A: (USUAL, ""), B: error("beta says nothing")}))
    assert await preparation.ready(launch_of(A, B), frozenset({A, B})) == {A}
