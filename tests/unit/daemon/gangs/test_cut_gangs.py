"""Gangs whose ranks hold a model together: their orders, what members are asked, their end."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN
from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.rendezvous import Rendezvous
from jupiterd.daemon.leader.checkpoint_parts import CheckpointParts
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.planning.gang_partition import GangPartition
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.work_events import CheckpointStored
from jupiterd.errors import DeviceFullError, DiskFullError, MemoryMissingError
from jupiterd.ids import NodeId
from tests.support.cluster.building import training
from tests.support.daemon.one_rank import CYCLE, LAUNCH
from tests.support.daemon.recording_term import Recording, attempt_on, checkpoint, made, steps
from tests.support.daemon.term_parts import FakeCalls, FakeMachines, FakeReach, FakeTerm
from tests.unit.cycle.training.test_memory import PRESETS, plan
from tests.unit.daemon.gangs.test_gang_preflight import MACHINE, USUAL, A, Asking, B, preparing

SMALL = PRESETS["1m"]
TOLD = plan(SMALL).model_copy(update={"micro_batch_sequences": 3})
CUT = GangPartition(Partition(2, (700, 300)), (900, 500), TOLD)


def cut_gang(*gang: NodeId, cut: GangPartition = CUT) -> GangPlan:
    return GangPlan(
        1, EngineChoice(TORCH, gang, "as asked"), "", 0, 0.0, (3,) * len(gang), partition=cut
    )


def orders(
    gang_plan: GangPlan, rank: int, hardware: Hardware = MACHINE, **said: str
) -> dict[str, object]:
    """What a rank is told of a run that was asked for so."""
    term, state = FakeTerm(), CycleState()
    asked = replace(training(), cycle=CYCLE, settings={**training().settings, **said})
    state.apply(asked, (1, A, "u", 1))
    term.state.cycles[CYCLE] = state
    trained = TrainedRound(CYCLE, 1, SMALL, plan(SMALL))
    machines = FakeMachines({A: hardware, B: hardware}, {A: "alpha", B: "beta"})
    made_of = RankOrders(term, machines, FakeReach(), FakeCalls(), trained)
    meeting = Rendezvous(hosts=("10.0.0.1", "10.0.0.2"))
    return made_of.params(gang_plan, meeting, rank)


def test_each_rank_is_told_all_parts_and_a_plan_that_leaves_nothing_to_decide() -> None:
    told = [orders(cut_gang(A, B), rank) for rank in (0, 1)]
    assert [each["partition"] for each in told] == [{"stage": 2, "parts": [700, 300]}] * 2
    assert [each["plan"] for each in told] == [TOLD.to_plain()] * 2
    assert [each["micro_batch_sequences"] for each in told] == [3, 3]


def test_ranks_that_hold_everything_are_told_nothing_that_older_builds_do_not_know() -> None:
    told = orders(replace(cut_gang(A, B), partition=None), 0)
    assert "partition" not in told


def test_a_rank_of_a_member_with_a_limit_takes_what_fits_it_without_looking() -> None:
    whole = replace(cut_gang(A, B), partition=None)
    told = TrainPlan.model_validate(orders(whole, 0, memory=f"{A}=1.2")["plan"])
    free = TrainPlan.model_validate(orders(whole, 1, memory=f"{A}=1.2")["plan"])
    assert (told.options.micro_batch, free.options.micro_batch) == ("fixed", "auto")
    assert told.options.gradient_checkpointing in ("on", "off")


async def test_each_member_is_asked_for_what_its_part_needs() -> None:
    term = Asking({A: (3, ""), B: (3, "")})
    gang_plan = await preparing(term).prepared(lambda _: cut_gang(A, B))
    needs = {
        node: [(n.micro_batch, n.size_bytes) for n in asked.needs] for node, asked in term.requests
    }
    assert needs == {A: [(3, 900)], B: [(3, 500)]}
    assert gang_plan.micro_batches == (3, 3)


async def test_members_on_one_machine_are_asked_for_what_they_take_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Asking, "machine", replace(MACHINE, host="one"))
    term = Asking({A: (3, ""), B: (3, "")})
    await preparing(term).prepared(lambda _: cut_gang(A, B))
    assert [asked.needs[0].size_bytes for _, asked in term.requests] == [1400, 1400]


async def test_a_member_without_room_is_left_out_and_the_others_are_planned_anew() -> None:
    full = DeviceFullError("beta: cpu has 0.1 GB free, and a gang needs 0.4 GB there at the least")
    preparation = preparing(Asking({A: (3, ""), B: full}))
    alone = GangPartition(Partition(2, (1,)), (1400,), TOLD)

    def planned(without: object) -> GangPlan:
        return cut_gang(A, cut=alone) if B in cast("frozenset[NodeId]", without) else cut_gang(A, B)

    assert (await preparation.prepared(planned)).gang == (A,)


async def test_a_gang_that_is_too_small_waits_and_says_why_until_somebody_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacks = MemoryMissingError("1b waits for 7.1 GB more memory: beta is gone")
    plans: list[object] = [lacks, lacks, cut_gang(A, B)]
    said: list[str] = []

    async def waited(_: ProgressBoard, __: object, message: str) -> None:
        said.append(message)

    def planned(_: object) -> GangPlan:
        if isinstance(found := plans.pop(0), MemoryMissingError):
            raise found
        return cast("GangPlan", found)

    monkeypatch.setattr("jupiterd.daemon.gangs.gang_preflight.wait_out", waited)
    preparation = preparing(Asking({A: (3, ""), B: (3, "")}))
    gang_plan = await preparation.prepared_once_resumed(planned, lambda: False)
    assert gang_plan.gang == (A, B)
    assert said == [lacks.message] * 2


async def test_a_newcomer_is_asked_for_the_part_that_it_would_hold() -> None:
    term = Asking({B: (3, "")})
    assert await preparing(term).ready(cut_gang(A, B), frozenset({B})) == {B}
    ((node, request),) = term.requests
    assert (node, request.ranks, request.needs[0].size_bytes) == (B, 1, 500)


async def test_no_survivor_is_asked_for_a_step_of_which_a_lost_rank_had_a_part() -> None:
    term = Recording(checkpoint("k1", step=10))
    supervisor = attempt_on(term, "k1")
    gang_plan = replace(LAUNCH, partition=CUT, micro_batches=(3, 3))
    await supervisor._end(gang_plan, "rank 1 was lost", saves_last_step=True)
    assert term.calls.wishes == [None]
    await supervisor._end(replace(LAUNCH, attempt=4), "rank 1 was lost", saves_last_step=True)
    assert term.calls.wishes[1] is not None


async def test_the_last_set_of_an_attempt_counts_once_its_end_can_be_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    term = Recording(checkpoint("k1", step=10))
    supervisor, gang_plan = attempt_on(term, "k1"), replace(LAUNCH, partition=CUT)

    async def rest() -> list[tuple[NodeId, CheckpointStored]]:
        return [(A, made("k2", 12))]

    async def refused(*_: Fact) -> None:
        raise DiskFullError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(term.term, "record", refused)
        supervisor._parts = cast("CheckpointParts", SimpleNamespace(rest=rest))
        await supervisor._end(gang_plan, "rank 1 was lost")
    assert steps(term) == []
    await supervisor._end(replace(gang_plan, attempt=2), LEFT_OPEN)
    assert steps(term) == [], "it is another attempt's"
    await supervisor._end(gang_plan, LEFT_OPEN)
    assert steps(term) == [12]


def test_an_attempt_records_the_stage_and_the_parts() -> None:
    supervisor = attempt_on(Recording(), "")
    opened = supervisor._lineage.opened(replace(LAUNCH, partition=CUT))
    assert (opened.stage, opened.parts) == (2, (700, 300))
    assert supervisor._lineage.opened(LAUNCH).stage == 0


def test_sizes_of_a_gang_that_held_it_together_bind_no_later_one() -> None:
    sizes = MicroBatchSizes(USUAL)
    supervisor = attempt_on(Recording(), "")
    whole = supervisor._lineage.opened(replace(LAUNCH, micro_batches=(2, 2)))
    cut = supervisor._lineage.opened(
        replace(LAUNCH, attempt=4, micro_batches=(1, 1), partition=CUT)
    )
    sizes.take_up({3: whole, 4: cut}, 1)
    assert sizes.most(LAUNCH.gang) == 2
    assert MicroBatchSizes(USUAL).most(LAUNCH.gang) == 0
