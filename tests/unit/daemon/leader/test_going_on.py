"""What a new leader does with the gang of the one before."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace

import pytest

from jupiterd.cluster.facts.attempt_facts import (
    LEFT_OPEN,
    AttemptAdopted,
    AttemptClosed,
    AttemptOpened,
)
from jupiterd.cluster.facts.facts import BranchSuspended, CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.training.plan import derive
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.planning.gang_plan import nccl_failure
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
    Finished,
    Started,
    WorkEvent,
    WorkOrder,
)
from jupiterd.errors import NcclFailedError, NotFoundError, WorkFailedError
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.protocol.frames import GangJoined, Progressed
from jupiterd.protocol.training_values import TrainingProgress
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.term_parts import (
    FakeCalls,
    FakeMachines,
    FakeReach,
    FakeTerm,
    services_of,
)

CYCLE = CycleId("c" * 16)
A, B, OLD, NEW = NodeId("a"), NodeId("b"), NodeId("old"), NodeId("new")
DONE = Finished(WorkResult({}))
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30)
OPENED = AttemptOpened(CYCLE, 1, 3, (A, B), "torch/gloo", "", 0)
RANKS = ("cccccccc/r1/train/3/0", "cccccccc/r1/train/3/1")
STARTED = Started(7, "cpu", running_s=60.0)
STEPS = 300


def saved(step: int) -> CheckpointStored:
    return CheckpointStored(ArtifactId(f"k{step}"), TrainingProgress(step, step, step, 1.0))


def committed(step: int, parent: str = "") -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, 1, parent, ArtifactId(f"k{step}"), 3, step, step, step, 1.0, step == STEPS
    )


class Term(FakeTerm):
    """A term of leading whose members say what a test tells, and whose ledger is a list."""

    def __init__(
        self,
        told: Mapping[str, Sequence[WorkEvent | Exception]],
        *before: CycleFact,
        alive: Sequence[NodeId] = (A, B, NEW),
    ) -> None:
        super().__init__(NEW)
        self.know(CYCLE, *before)
        machine = replace(MACHINE, devices=("cuda:0", "cuda:2"))
        known = {node: machine if node == A else MACHINE for node in (A, B, NEW, OLD)}
        machines = FakeMachines(known, answering=alive)
        self.reach, self.calls = FakeReach(self), FakeCalls(self._run)
        self.services = services_of(self, machines=machines, reach=self.reach, calls=self.calls)
        self.board = self.services.board
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        self.followed: set[str] = set()
        self._told = told

    async def _run(self, _node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        self.followed.add(order.id)
        try:
            for event in self._told[order.id]:
                if isinstance(event, Exception):
                    raise event
                yield event
            if DONE not in self._told[order.id]:
                await asyncio.Event().wait()
        finally:
            self.followed.discard(order.id)


def supervisor(term: Term) -> GangSupervisor:
    sizes = {"steps": STEPS, "checkpoint_every_steps": 100, "micro_batch_sequences": 8}
    plan = derive(tiny_shape(), 1).model_copy(update=sizes)
    return GangSupervisor(term.services, TrainedRound(CYCLE, 1, tiny_shape(), plan))


async def test_a_gang_that_is_all_there_is_followed_to_its_end() -> None:
    told = [
        STARTED,
        GangJoined("cpu", ""),
        saved(100),
        saved(200),
        Progressed(250, 300, "steps", {}),
    ]
    term = Term(
        {RANKS[0]: [*told, saved(300), DONE], RANKS[1]: [STARTED, DONE]}, OPENED, committed(100)
    )
    assert await supervisor(term)._take_over_open_attempt()
    adoption, *checkpoints, closed = term.recorded
    assert adoption == AttemptAdopted(CYCLE, 3)
    assert checkpoints == [committed(200, "k100"), committed(300, "k200")], "each recorded once"
    assert isinstance(closed, AttemptClosed)
    assert (closed.attempt, closed.reason) == (3, "finished")
    assert closed.elapsed_s >= STARTED.running_s
    assert term.calls.ended == [((A, B), 3)], "all of it is ended"
    assert [
        (node, order.id, order.attempt, order.is_attach) for node, order in term.calls.asked
    ] == [(A, RANKS[0], 3, True), (B, RANKS[1], 3, True)]
    assert term.followed == set()
    (shown,) = term.board.to_plain(1.0)
    assert [(seat["node"], seat["pid"]) for seat in shown["gang"]] == [(A, 7), (B, 7)]
    assert (shown["epoch"], shown["resumed_from_step"], shown["done"]) == (3, 0, 250)


async def test_an_attempt_that_has_recorded_nothing_goes_on_from_where_it_started() -> None:
    before = replace(committed(100), attempt=2)
    opened = replace(OPENED, from_checkpoint="k100", from_step=100, gang=(A,), engine="torch")
    term = Term({RANKS[0]: [STARTED, saved(100), saved(300), DONE]}, before, opened)
    assert await supervisor(term)._take_over_open_attempt()
    assert term.recorded[1:-1] == [replace(committed(300, "k100"), began_with="k100")]


@pytest.mark.parametrize(
    ("engine", "gang", "asked"),
    [("mlx/ring", (A, B), RANKS), ("torch", (A,), RANKS[:1]), ("mlx", (A,), RANKS[:1])],
)
async def test_rings_and_gangs_of_one_have_no_store(
    engine: str, gang: tuple[NodeId, ...], asked: Sequence[str]
) -> None:
    opened = replace(OPENED, engine=engine, gang=gang)
    term = Term({rank: [STARTED, GangJoined("cpu", ""), DONE] for rank in RANKS}, opened)
    assert await supervisor(term)._take_over_open_attempt()
    assert [order.id for _, order in term.calls.asked] == list(asked)


@pytest.mark.parametrize("missing", RANKS)
async def test_a_gang_that_is_not_all_there_is_ended(missing: str) -> None:
    told: dict[str, list[WorkEvent | Exception]] = {order: [STARTED, saved(100)] for order in RANKS}
    term = Term({**told, missing: [NotFoundError("nothing runs here")]}, OPENED)
    assert not await supervisor(term)._take_over_open_attempt()
    (closed,) = term.recorded
    assert isinstance(closed, AttemptClosed)
    assert (closed.attempt, closed.reason) == (3, LEFT_OPEN)
    assert term.calls.ended == [((A, B), 3)]
    assert term.followed == set()


async def test_nobody_waits_for_a_member_that_died_with_the_leader() -> None:
    term = Term({}, OPENED, alive=[A, NEW])
    assert not await supervisor(term)._take_over_open_attempt()
    assert term.calls.asked == []
    assert [type(fact) for fact in term.recorded] == [AttemptClosed]


async def test_a_gang_of_another_round_is_ended_and_so_are_older_attempts() -> None:
    older, newest = replace(OPENED, attempt=1), replace(OPENED, attempt=2, round=2)
    term = Term({}, newest, older)
    assert not await supervisor(term)._take_over_open_attempt()
    closed = [fact for fact in term.recorded if isinstance(fact, AttemptClosed)]
    assert [fact.attempt for fact in closed] == [1, 2]
    assert term.calls.asked == []


async def test_a_rank_that_dies_after_the_adoption_ends_the_attempt() -> None:
    killed = WorkFailedError("the worker was killed")
    term = Term({RANKS[0]: [STARTED], RANKS[1]: [STARTED, killed]}, OPENED)
    with pytest.raises(ExceptionGroup) as ended:
        await supervisor(term)._take_over_open_attempt()
    assert ended.group_contains(WorkFailedError)
    adoption, closed = term.recorded
    assert adoption == AttemptAdopted(CYCLE, 3)
    assert isinstance(closed, AttemptClosed)
    assert closed.reason == "the worker was killed"
    assert term.calls.ended == [((A, B), 3)]


async def test_two_ranks_of_one_node_are_followed_each_on_its_device() -> None:
    ranks = {f"cccccccc/r1/train/3/{rank}": [STARTED, DONE] for rank in range(3)}
    ranks["cccccccc/r1/train/3/0"] = [STARTED, saved(300), DONE]
    term = Term(ranks, replace(OPENED, gang=(A, A, B), engine="torch/nccl"))
    assert await supervisor(term)._take_over_open_attempt()
    assert [(node, order.id) for node, order in term.calls.asked] == [
        *zip((A, A, B), ranks, strict=True)
    ]
    assert term.calls.ended == [((A, A, B), 3)]
    (shown,) = term.board.to_plain(1.0)
    assert [(seat["node"], seat["engine"]) for seat in shown["gang"]] == [
        (node, "torch/nccl") for node in (A, A, B)
    ]


async def test_an_attempt_that_nccl_has_failed_is_remembered_by_the_ledger() -> None:
    failed = NcclFailedError("rank 1 couldn't sum over NCCL within 45 s")
    nccl = replace(OPENED, engine="torch/nccl")
    term = Term({RANKS[0]: [STARTED], RANKS[1]: [STARTED, failed]}, nccl)
    assert nccl_failure(term.cycle(CYCLE)) == ""
    with pytest.raises(ExceptionGroup):
        await supervisor(term)._take_over_open_attempt()
    closed = term.recorded[-1]
    assert isinstance(closed, AttemptClosed)
    assert (closed.reason, closed.code) == (failed.message, "nccl-failed")
    why = "NCCL failed in attempt 3: rank 1 couldn't sum over NCCL within 45 s"
    assert nccl_failure(term.cycle(CYCLE)) == why


async def test_other_ends_of_an_attempt_say_nothing_against_nccl() -> None:
    killed = WorkFailedError("the worker was killed")
    term = Term({RANKS[0]: [STARTED], RANKS[1]: [STARTED, killed]}, OPENED)
    with pytest.raises(ExceptionGroup):
        await supervisor(term)._take_over_open_attempt()
    assert nccl_failure(term.cycle(CYCLE)) == ""


async def test_the_last_step_of_the_survivors_is_recorded_before_the_attempt_is_closed() -> None:
    killed = WorkFailedError("the worker was killed")
    told = [STARTED, saved(100), killed]
    term = Term({RANKS[0]: told, RANKS[1]: [STARTED]}, OPENED)
    term.calls.kept = [(A, saved(150)), (B, saved(151))]
    with pytest.raises(ExceptionGroup):
        await supervisor(term)._take_over_open_attempt()
    on_trunk = replace(committed(100), on_trunk=True)
    assert term.recorded[1:-1] == [on_trunk, committed(151, "k100")]
    assert isinstance(term.recorded[-1], AttemptClosed)
    (save,) = term.calls.wishes
    assert save is not None
    assert save.after_step == 100


async def test_a_new_leader_records_what_the_gang_of_the_last_one_has_finished() -> None:
    term = Term({}, OPENED, committed(100), alive=[A, NEW])
    term.calls.kept = [(A, saved(170))]
    assert not await supervisor(term)._take_over_open_attempt()
    assert term.recorded[0] == committed(170, "k100")
    assert isinstance(term.recorded[1], AttemptClosed)


async def test_a_step_that_is_recorded_already_is_not_recorded_again() -> None:
    term = Term({}, OPENED, committed(200), alive=[A, NEW])
    term.calls.kept = [(A, saved(150))]
    assert not await supervisor(term)._take_over_open_attempt()
    assert [type(fact) for fact in term.recorded] == [AttemptClosed]


async def test_of_a_line_that_counts_no_more_only_what_is_longer_is_kept_and_counts() -> None:
    """Groups met; the machine that had been alone was a step further, and the gang is by now."""
    other = replace(committed(250), attempt=2, artifact=ArtifactId("x250"))
    term = Term({}, OPENED, committed(200), other, alive=[A, NEW])
    term.calls.kept = [(A, saved(265))]
    assert not await supervisor(term)._take_over_open_attempt()
    (save,) = term.calls.wishes
    assert save is not None
    assert save.after_step == 250
    assert term.recorded[0] == committed(265, "k200")
    last = term.cycle(CYCLE).last_checkpoint(1)
    assert last is not None
    assert last.step == 265


async def test_nobody_waits_for_one_step_that_a_machine_that_was_cut_off_alone_holds() -> None:
    """It recorded what it had kept, and that word came through before its cable was out."""
    term = Term({}, OPENED, committed(100), committed(151, "k100"), alive=[A, NEW])
    term.reach.out_of_reach, term.calls.kept = {"k151"}, [(A, saved(150))]
    assert not await supervisor(term)._take_over_open_attempt()
    (save,) = term.calls.wishes
    assert save is not None
    assert save.after_step == 100
    kept, suspended, _ = term.recorded
    assert (kept, suspended) == (
        committed(150, "k100"),
        BranchSuspended(CYCLE, "k151", is_suspended=True, edit=1),
    )
    last = term.cycle(CYCLE).last_checkpoint(1)
    assert last is not None
    assert last.step == 150


async def test_more_than_one_step_is_waited_for_before_a_line_is_parked() -> None:
    term = Term({}, OPENED, committed(100), committed(152, "k100"), alive=[A, NEW])
    term.reach.out_of_reach, term.calls.kept = {"k152"}, [(A, saved(150))]
    assert not await supervisor(term)._take_over_open_attempt()
    assert [type(fact) for fact in term.recorded] == [CheckpointCommitted, AttemptClosed]
    last = term.cycle(CYCLE).last_checkpoint(1)
    assert last is not None
    assert last.step == 152


async def test_a_leader_that_is_replaced_leaves_the_gang_to_the_next() -> None:
    term = Term({order: [STARTED] for order in RANKS}, OPENED)
    going_on = asyncio.ensure_future(supervisor(term)._take_over_open_attempt())
    await term.has_recorded.wait()
    term.is_over = True
    going_on.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert term.recorded == [AttemptAdopted(CYCLE, 3)]
    assert term.calls.ended == []
    assert term.followed == set()


async def test_a_cycle_that_is_stopped_ends_the_gang() -> None:
    term = Term({order: [STARTED] for order in RANKS}, OPENED)
    going_on = asyncio.ensure_future(supervisor(term)._take_over_open_attempt())
    await term.has_recorded.wait()
    going_on.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert term.calls.ended == [((A, B), 3)]
    assert isinstance(term.recorded[-1], AttemptClosed)
    assert term.recorded[-1].reason == "it was stopped"
