"""How the leader follows one rank of a gang: until it has joined, until it ends, or crashes."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.planning.backends import GLOO, NCCL
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.gangs import gang_supervisor
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    Finished,
    PseudoGradientStored,
    Started,
    WorkEvent,
)
from jupiterd.errors import NcclFailedError, TimedOutError, WorkerCrashedError, WorkFailedError
from jupiterd.ids import ArtifactId
from jupiterd.protocol.frames import GangJoined, Progressed
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.daemon.one_rank import CRASH, CYCLE, LAUNCH, A, B, OneRank, following

TIMEOUT_S = 0.05


async def follow(rank: OneRank) -> None:
    await following(rank)._follow(0, A, rank.run(), LAUNCH)


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_supervisor, "RING_TIMEOUT_S", TIMEOUT_S)


async def test_a_ring_that_is_not_formed_in_time_is_given_up() -> None:
    with pytest.raises(TimedOutError, match="the MLX ring wasn't formed"):
        await follow(OneRank(Started(7, "cpu"), is_slow=True))


async def test_a_rank_that_has_joined_is_waited_for_as_long_as_it_takes() -> None:
    following = asyncio.ensure_future(
        follow(OneRank(Started(7, "cpu"), GangJoined("cpu", ""), is_slow=True))
    )
    done, _ = await asyncio.wait([following], timeout=3 * TIMEOUT_S)
    assert not done
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_an_island_tells_its_run_of_its_ways_and_nobody_takes_it_for_stuck() -> None:
    way = PseudoGradientStored(ArtifactId("5" * 64), PseudoGradient("6" * 64, 960, 1.0, 12.5))
    first = Progressed(0, 100, "steps", {"waiting": 1.0})
    steps = [Progressed(step, 100, "steps", {}) for step in (1, 2)]
    said = [first, *steps, way, Progressed(2, 100, "steps", {"waiting": 1.0})]
    rank = OneRank(Started(7, "cpu"), GangJoined("cpu", ""), *said, is_slow=True)
    conductor = following(rank, parent="p" * 16)
    task = asyncio.ensure_future(conductor._follow(0, A, rank.run(), LAUNCH))
    async with asyncio.timeout(5.0):
        while rank.pseudo_gradients.of(CYCLE, "6" * 64) is None:
            await rank.pseudo_gradients.news(0.1)
    told = rank.pseudo_gradients.of(CYCLE, "6" * 64)
    assert told is not None
    assert (told.stored, told.node) == (way, A)
    assert rank.pseudo_gradients.is_training(CYCLE)
    assert not conductor._watch.is_in_doubt(now_s() + 1e6)
    task.cancel()
    await asyncio.wait([task])


async def test_the_gang_and_its_note_are_shown() -> None:
    rank = OneRank(Started(7, "cpu"), GangJoined("gpu", "a note"), Finished(WorkResult({})))
    await follow(rank)
    (plain,) = rank.board.to_plain(1.0)
    seat: dict[str, Any] = plain["gang"][0]
    assert (seat["engine"], seat["device"], seat["pid"]) == ("mlx/ring", "gpu", 7)
    assert plain["detail"] == "a note"


async def test_how_far_and_how_fast_a_rank_is_itself_is_shown() -> None:
    values = {"tokens_per_s": 400.0, "rank_tokens_per_s": 100.04}
    step = Progressed(3, 100, "steps", values)
    rank = OneRank(Started(7, "cpu"), GangJoined("cpu", ""), step, Finished(WorkResult({})))
    await follow(rank)
    (plain,) = rank.board.to_plain(1.0)
    seat: dict[str, Any] = plain["gang"][0]
    assert (seat["step"], seat["step_lag"], seat["tokens_per_s"]) == (3, 0, 100.0)


@pytest.mark.parametrize(
    ("backend", "before", "becomes"),
    [
        (NCCL, [], NcclFailedError),
        (NCCL, [Started(7, "cuda:0")], NcclFailedError),
        (NCCL, [Started(7, "cuda:0"), GangJoined("cuda:0", "")], WorkerCrashedError),
        (GLOO, [Started(7, "cuda:0")], WorkerCrashedError),
    ],
)
async def test_a_crash_before_the_first_sum_over_nccl_is_nccls(
    backend: str, before: list[WorkEvent], becomes: type[WorkFailedError]
) -> None:
    launch = replace(LAUNCH, choice=EngineChoice(TORCH, (A, B), "as asked", backend))

    async def events() -> AsyncGenerator[WorkEvent]:
        for event in before:
            yield event
        raise CRASH

    conductor = following(OneRank(), launch)
    with pytest.raises(WorkFailedError) as told:
        await conductor._follow(0, A, events(), launch)
    assert type(told.value) is becomes
    assert told.value.message.startswith(CRASH.message)
