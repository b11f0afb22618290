"""What is kept of a gang that ends, and for whom."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.daemon.runtime.work_events import (
    SaveRequest,
    StateStored,
)
from jupiterd.errors import (
    PeerUnreachableError,
    WorkFailedError,
)
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import RankStuck
from tests.unit.daemon.executor.test_order_executor import (
    DONE,
    EPOCH,
    LEADER,
    RANK,
    SHORT_S,
    TERM,
    TIMEOUT_S,
    begin,
    heard,
    holding,
    saved,
    step,
)


async def test_the_last_finished_step_is_kept_before_the_worker_is_ended(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        other, late = (replace(RANK, id=f"c/r1/train/3/{rank}") for rank in (1, 2))
        await begin(executor, RANK, other, late)
        workers.at_keep = {
            RANK.id: (StateStored(saved(7)),),
            other.id: (StateStored(saved(8)),),
        }
        workers.at_keep[late.id] = (StateStored(None),)
        kept = await executor.end(
            LEADER, TERM, EPOCH, SaveRequest(after_step=5, within_s=TIMEOUT_S)
        )
        assert kept == saved(8), "the later one of two ranks"
        assert {after for _, after in workers.wanted} == {5}
        assert workers.running == set()


async def test_a_rank_that_is_stuck_fails_for_its_leader_and_still_has_its_state(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        workers.say(RANK.id, step(1), RankStuck(WorkFailedError.code, "a peer was lost", ""))
        assert await anext(events) == step(1)
        with pytest.raises(WorkFailedError, match="a peer was lost"):
            await anext(events)
        assert workers.running == {RANK.id}
        workers.at_keep[RANK.id] = (StateStored(saved(1)),)
        assert await executor.end(LEADER, TERM, EPOCH, SaveRequest(0, TIMEOUT_S)) == saved(1)
        assert workers.running == set()


async def test_a_large_state_may_take_longer_than_a_rank_without_a_leader_lives(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path, SHORT_S) as (executor, workers):
        (events,) = await begin(executor, RANK)
        await events.aclose()
        ending = asyncio.ensure_future(executor.end(LEADER, TERM, EPOCH, SaveRequest(0, TIMEOUT_S)))
        done, _ = await asyncio.wait([ending], timeout=4 * SHORT_S)
        assert not done
        assert workers.running == {RANK.id}
        workers.say(RANK.id, StateStored(saved(7)))
        assert await ending == saved(7)
        assert workers.running == set()


async def test_a_rank_whose_leader_went_while_it_kept_its_state_is_ended_after_a_while(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path, SHORT_S) as (executor, workers):
        (events,) = await begin(executor, RANK)
        await events.aclose()
        ending = asyncio.ensure_future(executor.end(LEADER, TERM, EPOCH, SaveRequest(0, TIMEOUT_S)))
        await asyncio.wait([ending], timeout=2 * SHORT_S)
        ending.cancel()
        await workers.all_ended()


async def test_what_another_line_has_kept_under_the_same_number_is_not_told(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        await begin(executor, RANK)
        workers.at_keep[RANK.id] = (StateStored(saved(7)),)
        save = SaveRequest(0, TIMEOUT_S)
        assert await executor.end(LEADER, TERM, EPOCH, save) == saved(7)
        workers.at_keep[RANK.id] = (StateStored(None),)
        await begin(executor, replace(RANK, term=TERM + 1))
        assert await executor.end(LEADER, TERM + 1, EPOCH, save) is None


async def test_what_was_kept_for_a_leader_that_died_is_told_to_the_next_one(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        await begin(executor, RANK)
        workers.at_keep[RANK.id] = (StateStored(saved(7)),)
        save = SaveRequest(0, TIMEOUT_S)
        assert await executor.end(LEADER, TERM, EPOCH, save) == saved(7)
        next_one = NodeId("b" * 32)
        assert await executor.end(next_one, TERM + 1, EPOCH, save) == saved(7)
        assert await executor.end(next_one, TERM + 1, EPOCH, replace(save, after_step=7)) is None
        assert await executor.end(next_one, TERM + 1, EPOCH + 1, save) is None


async def test_a_rank_that_is_done_has_left_its_last_checkpoint(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        workers.say(RANK.id, saved(5), saved(8), DONE)
        await heard(events, lambda event: event == DONE)
        await events.aclose()
        await workers.all_ended()
        assert await executor.end(LEADER, TERM, EPOCH, SaveRequest(5, TIMEOUT_S)) == saved(8)


async def test_a_checkpoint_that_is_recorded_is_not_kept_again(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        (events,) = await begin(executor, RANK)
        workers.say(RANK.id, saved(5))
        await heard(events, lambda event: event == saved(5))
        workers.at_keep[RANK.id] = (StateStored(None),)
        assert await executor.end(LEADER, TERM, EPOCH, SaveRequest(5, TIMEOUT_S)) is None


async def test_nobody_waits_for_the_state_of_a_rank_that_was_ended_otherwise(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path) as (executor, _):
        await begin(executor, RANK)
        save = SaveRequest(0, 10 * TIMEOUT_S)
        ending = asyncio.ensure_future(executor.end(LEADER, TERM, EPOCH, save))
        await asyncio.wait([ending], timeout=SHORT_S)
        await executor.end_all(PeerUnreachableError("node-2 was stopped"))
        assert await ending is None


async def test_a_worker_that_does_not_answer_is_waited_for_no_longer_than_allowed(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path) as (executor, workers):
        await begin(executor, RANK)
        assert await executor.end(LEADER, TERM, EPOCH, SaveRequest(0, SHORT_S)) is None
        assert workers.running == set()


async def test_a_worker_that_dies_instead_of_answering_is_not_waited_for(tmp_path: Path) -> None:
    async with holding(tmp_path) as (executor, workers):
        await begin(executor, RANK)
        workers.at_keep[RANK.id] = (WorkFailedError("it was killed"),)
        assert await executor.end(LEADER, TERM, EPOCH, SaveRequest(0, 10 * TIMEOUT_S)) is None
