"""A gang's work outlives the leader that ordered it, for a while; all other work doesn't."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.training.gang_watchdog import BEAT_S
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.executor import rank_worker
from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.executor.rank_worker import REPORTED_CHECKPOINTS, WorkerReport
from jupiterd.daemon.membership.fencing import Fencing
from jupiterd.daemon.runtime.work_events import (
    BUSY,
    CheckpointStored,
    Finished,
    SaveRequest,
    Started,
    StateStored,
    WorkEvent,
    WorkOrder,
)
from jupiterd.errors import (
    ConflictError,
    NotFoundError,
    PeerUnreachableError,
    RefusedError,
    WorkFailedError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.protocol.frames import GangJoined, Progressed, RankListening
from jupiterd.protocol.training_values import TrainingProgress
from jupiterd.rpc import peer_pb2
from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemon.by_hand import PID, Workers

LEADER = NodeId("a" * 32)
TERM, EPOCH = 4, 3
RANK = WorkOrder("c/r1/train/3/0", TERM, "train", {}, {}, EPOCH)
OTHER = replace(RANK, id="c/r1/train/3/1")
ALONE = WorkOrder("c/r1/filter/0", TERM, "filter", {}, {})
NEXT_LEADER = replace(RANK, term=TERM + 1, is_attach=True)
DONE = Finished(WorkResult({}))
TIMEOUT_S = 5.0
SHORT_S = 0.05


class _Over(Exception):  # noqa: N818 - the end of a test
    """Ends the tasks that hold work."""


@asynccontextmanager
async def holding(
    folder: Path, grace_s: float = 60.0
) -> AsyncGenerator[tuple[OrderExecutor, Workers]]:
    workers, file = Workers(), LedgerFile(folder / "ledger.db")
    try:
        async with asyncio.TaskGroup() as group, asyncio.timeout(TIMEOUT_S):
            yield (OrderExecutor(workers, Fencing(file), group, grace_s), workers)
            raise _Over  # noqa: TRY301 - as a daemon's end does
    except* _Over:
        pass
    file.close()
    assert workers.running == set()


def step(number: int) -> Progressed:
    return Progressed(number, 100, "steps", {})


def busy(number: int) -> Progressed:
    return Progressed(number, 0, "steps", {BUSY: 1.0})


def saved(number: int) -> CheckpointStored:
    return CheckpointStored(ArtifactId(f"k{number}"), TrainingProgress(number, number, number, 1.0))


def is_start(event: WorkEvent) -> bool:
    return isinstance(event, Started)


async def heard(
    events: AsyncGenerator[WorkEvent], is_last: Callable[[WorkEvent], bool]
) -> list[WorkEvent]:
    """What is told up to an event."""
    told: list[WorkEvent] = []
    async for event in events:
        told.append(event)
        if is_last(event):
            return told
    raise AssertionError(f"they said no more than {told}")


async def begin(executor: OrderExecutor, *orders: WorkOrder) -> list[AsyncGenerator[WorkEvent]]:
    """Let a leader order work and hear that it has begun."""
    streams = [executor.run(LEADER, order) for order in orders]
    for stream in streams:
        await heard(stream, is_start)
    return streams


async def test_a_rank_goes_on_when_its_leader_leaves_and_the_next_one_is_told_all(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        said = [GangJoined("cpu", "a note"), step(1), saved(1)]
        workers.say(RANK.id, *said, step(2))
        await heard(events, lambda event: event == step(2))
        await events.aclose()
        workers.say(RANK.id, step(3), saved(3), step(4))
        async with aclosing(executor.run(LEADER, NEXT_LEADER)) as followed:
            told = await heard(followed, lambda event: event == step(4))
            assert is_start(told[0])
            assert told[1:] == [said[0], saved(1), saved(3), step(4)]
            workers.say(RANK.id, step(5), DONE)
            assert [event async for event in followed] == [step(5), DONE]


async def test_of_many_steps_the_first_and_the_last_are_told_and_few_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        began_s = asyncio.get_running_loop().time()
        with monkeypatch.context() as patch:
            patch.setattr(
                rank_worker, "BEAT_S", 2 * TIMEOUT_S
            )  # nobody waits so long for the first
            workers.say(RANK.id, step(1))
            (first,) = await heard(events, lambda event: isinstance(event, Progressed))
            assert first == step(1)

        async def train() -> None:
            for number in range(2, 101):
                workers.say(RANK.id, step(number))
                await asyncio.sleep(2 * BEAT_S / 100)

        training = asyncio.ensure_future(train())
        told = await heard(events, lambda event: event == step(100))
        took_s = asyncio.get_running_loop().time() - began_s
        steps = [event for event in told if isinstance(event, Progressed)]
        assert len(steps) <= took_s / BEAT_S + 1
        await training
        workers.say(RANK.id, step(101), DONE)
        assert [event async for event in events] == [step(101), DONE]


async def test_other_work_ends_with_the_stream(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, ALONE)
        assert workers.running == {ALONE.id}
        await events.aclose()
        assert workers.running == set()


async def test_a_rank_that_nobody_follows_is_ended_after_a_while(tmp_path: Path) -> None:
    async with holding(tmp_path, SHORT_S) as (executor, workers):
        began_s = asyncio.get_running_loop().time()
        for events in await begin(executor, RANK, OTHER):
            await events.aclose()
        assert workers.running == {RANK.id, OTHER.id}
        await workers.all_ended()
        assert asyncio.get_running_loop().time() - began_s >= SHORT_S
        with pytest.raises(NotFoundError):
            await anext(executor.run(LEADER, NEXT_LEADER))


async def test_a_rank_that_is_followed_again_is_not_ended(tmp_path: Path) -> None:
    async with holding(tmp_path, SHORT_S) as (executor, workers):
        (events,) = await begin(executor, RANK)
        await events.aclose()
        async with aclosing(executor.run(LEADER, NEXT_LEADER)) as followed:
            await heard(followed, is_start)
            silent = asyncio.ensure_future(anext(followed))
            done, _ = await asyncio.wait([silent], timeout=3 * SHORT_S)
            assert not done
            assert workers.running == {RANK.id}
            workers.say(RANK.id, step(9))
            assert await silent == step(9)


async def test_the_next_leader_is_told_for_how_long_it_has_been_running(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, _):
        (events,) = await begin(executor, RANK)
        await events.aclose()
        async with aclosing(executor.run(LEADER, NEXT_LEADER)) as followed:
            (started,) = await heard(followed, is_start)
            assert isinstance(started, Started)
            assert 0.0 < started.running_s < TIMEOUT_S


async def test_how_it_ended_while_nobody_led_is_told(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        for events in await begin(executor, RANK, OTHER):
            await events.aclose()
        workers.say(RANK.id, saved(100), DONE)
        workers.say(OTHER.id, WorkFailedError("it was killed"))
        await workers.all_ended()
        told = [event async for event in executor.run(LEADER, NEXT_LEADER)]
        assert told[1:] == [saved(100), DONE]
        with pytest.raises(WorkFailedError, match="it was killed"):
            await heard(
                executor.run(LEADER, replace(NEXT_LEADER, id=OTHER.id)),
                lambda event: not is_start(event),
            )


async def test_a_leader_may_die_with_the_end_in_its_hands(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        workers.say(RANK.id, saved(100), DONE)
        assert [event async for event in events] == [saved(100), DONE]
        assert [event async for event in executor.run(LEADER, NEXT_LEADER)][1:] == [
            saved(100),
            DONE,
        ]


async def test_a_leader_ends_an_attempt_at_once(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        followed, left = await begin(executor, RANK, OTHER)
        await left.aclose()
        await executor.end(LEADER, TERM, EPOCH)
        assert workers.running == set()
        with pytest.raises(RefusedError, match="attempt 3 was ended"):
            await anext(followed)
        with pytest.raises(NotFoundError):
            await anext(executor.run(LEADER, NEXT_LEADER))


async def test_all_ranks_are_asked_to_stop_together(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        await begin(executor, RANK, OTHER)
        await executor.stop_after_step(LEADER, TERM, EPOCH)
        with pytest.raises(NotFoundError):  # or its leader would wait for a stop that never comes
            await executor.stop_after_step(LEADER, TERM, EPOCH + 1)
        assert workers.stopped == [RANK.id, OTHER.id]
        assert workers.running == {RANK.id, OTHER.id}


async def test_who_leaves_lets_ranks_that_have_trained_finish_their_step(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events, _) = await begin(executor, RANK, OTHER)
        assert executor.finish_steps() == [], "there is nothing to save before the first step"
        assert workers.stopped == []
        workers.say(RANK.id, step(1))
        await anext(events)
        assert [held.order for held in executor.finish_steps()] == [RANK]
        assert workers.stopped == [RANK.id]
        assert workers.running == {RANK.id, OTHER.id}


async def test_who_leaves_begins_nothing_and_whoever_leads_next_is_told_all(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, _):
        (events,) = await begin(executor, RANK)
        executor.finish_steps()
        for order in (ALONE, replace(RANK, attempt=EPOCH + 1)):
            with pytest.raises(PeerUnreachableError, match="is being stopped"):
                await anext(executor.run(LEADER, order))
        reply = await executor.prepare(peer_pb2.PrepareRanksRequest())
        assert reply.failure.code == PeerUnreachableError.code
        await events.aclose()
        assert is_start(await anext(executor.run(LEADER, NEXT_LEADER)))


async def test_what_is_left_of_a_closed_attempt_is_ended(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        await events.aclose()
        await executor.end_closed({("c", EPOCH - 1), ("d", EPOCH)})
        assert workers.running == {RANK.id}
        await executor.end_closed({("c", EPOCH)})
        assert workers.running == set()


async def test_a_leader_gets_what_an_attempt_has_finished_that_others_have_closed(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        await executor.end_closed({("c", EPOCH)})
        with pytest.raises(RefusedError, match="its attempt has been closed"):
            await anext(events)
        workers.at_keep[RANK.id] = (StateStored(saved(7)),)
        assert await executor.end(LEADER, TERM, EPOCH, SaveRequest(0, TIMEOUT_S)) == saved(7)
        assert workers.running == set()


async def test_an_order_that_comes_after_the_end_of_its_attempt_is_refused(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        await executor.end(LEADER, TERM, EPOCH)
        with pytest.raises(RefusedError, match="attempt 3 has been ended"):
            await anext(executor.run(LEADER, RANK))
        assert workers.running == set()
        await begin(executor, replace(RANK, attempt=EPOCH + 1))


async def test_a_leader_that_was_replaced_ends_nothing(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (old,) = await begin(executor, RANK)
        (new,) = await begin(executor, NEXT_LEADER)
        with pytest.raises(RefusedError, match="another leader follows"):
            await anext(old)
        with pytest.raises(RefusedError, match="after term 5"):
            await executor.end(LEADER, TERM, EPOCH)
        workers.say(RANK.id, step(1))
        assert await anext(new) == step(1)


async def test_of_two_leaders_of_one_term_only_one_is_served(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, _):
        (first,) = await begin(executor, RANK)
        same_term = replace(RANK, is_attach=True)
        with pytest.raises(RefusedError, match="a leader of term 4 follows"):
            await anext(executor.run(LEADER, same_term))
        await first.aclose()
        await begin(executor, same_term)


async def test_another_gang_ends_what_the_one_before_left_here(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        for events in await begin(executor, RANK, OTHER):
            await events.aclose()
        later = replace(RANK, id="c/r1/train/4/0", attempt=EPOCH + 1)
        await begin(executor, later)
        assert workers.running == {later.id}
        with pytest.raises(RefusedError, match="after term 4, attempt 4"):
            await anext(executor.run(LEADER, RANK))


async def test_two_cycles_of_one_leader_leave_each_other_alone(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        other = replace(RANK, id="d/r1/train/4/0", attempt=EPOCH + 1)
        followed = [*await begin(executor, RANK), *await begin(executor, other)]
        assert workers.running == {RANK.id, other.id}
        await executor.end(LEADER, TERM, EPOCH)
        assert workers.running == {other.id}
        assert len(followed) == 2, "they were followed all the time"


async def test_another_leaders_gang_ends_that_of_a_leader_who_is_over(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        other = replace(RANK, id="d/r1/train/4/0", term=TERM + 1, attempt=EPOCH + 1)
        await begin(executor, other)
        assert workers.running == {other.id}
        with pytest.raises(RefusedError, match="attempt 4 has begun"):
            await anext(events)


async def test_the_same_work_does_not_begin_twice(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, _):
        await begin(executor, RANK)
        with pytest.raises(ConflictError):
            await anext(executor.run(LEADER, RANK))


async def test_a_daemon_that_stops_says_so_to_the_leader(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        await executor.end_all(PeerUnreachableError("node-2 was stopped"))
        assert workers.running == set()
        with pytest.raises(PeerUnreachableError, match="node-2 was stopped"):
            await anext(events)


def test_what_is_kept_for_the_next_leader_has_a_bound() -> None:
    told = WorkerReport()
    first = [Started(1, "cpu"), RankListening(1), GangJoined("cpu", "")]
    for event in first:
        told.keep(event)
    for number in range(1, 1001):
        told.keep(step(number))
        told.keep(saved(number))
    kept = [event for _, event in told.after(0)]
    newest = [saved(number) for number in range(1001 - REPORTED_CHECKPOINTS, 1001)]
    assert kept == [*first, *newest[:-1], step(1000), newest[-1]]
    assert [number for number, _ in told.after(0)] == sorted({n for n, _ in told.after(0)})


async def test_a_slow_leader_is_told_the_latest_step_and_every_checkpoint(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        for number in range(1, 6):
            workers.say(RANK.id, step(number), saved(number))
        workers.say(RANK.id, DONE)
        await workers.all_ended()
        told = [event async for event in events]
        assert told == [*map(saved, range(1, 5)), step(5), saved(5), DONE]


async def test_a_step_is_told_though_its_rank_writes_right_after_it(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        for number in range(1, 6):
            workers.say(RANK.id, step(number), busy(number))
        workers.say(RANK.id, DONE)
        await workers.all_ended()
        assert [event async for event in events] == [step(5), busy(5), DONE]


async def test_whoever_comes_while_the_worker_is_being_ended_is_told_so(tmp_path: Path) -> None:
    async with holding(tmp_path, SHORT_S) as (executor, workers):
        ending, ended = asyncio.Event(), asyncio.Event()
        workers.at_end = (ending, ended)
        (events,) = await begin(executor, RANK)
        await events.aclose()
        await ending.wait()
        (followed,) = await begin(executor, NEXT_LEADER)
        ended.set()
        with pytest.raises(RefusedError, match="nobody followed it"):
            await anext(followed)


async def test_a_worker_whose_ending_fails_is_ended_all_the_same(tmp_path: Path) -> None:
    async def run(order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        try:
            yield Started(PID, "cpu")
            await asyncio.Event().wait()
        finally:
            raise WorkFailedError(f"the folder of {order.id} can't be removed")

    async with holding(tmp_path) as (executor, workers):
        workers.run = run  # type: ignore[method-assign]
        (events,) = await begin(executor, RANK)
        await executor.end(LEADER, TERM, EPOCH)
        with pytest.raises(RefusedError, match="attempt 3 was ended"):
            await anext(events)
