"""How the leader follows one rank of a gang: until it has joined, until it ends, or crashes."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.planning.backends import GLOO, NCCL
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.training.gang_watchdog import BEAT_S, LEAST_STEP_S, GangWatchdog
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.gangs import rank_follower
from jupiterd.daemon.gangs.attempt_retries import root_cause
from jupiterd.daemon.gangs.rank_follower import follow
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    BUSY,
    Finished,
    PseudoGradientStored,
    Started,
    WorkEvent,
)
from jupiterd.errors import (
    JupiterError,
    NcclFailedError,
    TimedOutError,
    WorkerCrashedError,
    WorkerKilledError,
    WorkFailedError,
)
from jupiterd.ids import ArtifactId
from jupiterd.protocol.frames import CheckpointUnsaved, GangJoined, Progressed
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.daemon.one_rank import CRASH, CYCLE, LAUNCH, A, B, OneRank, events_of, following
from tests.support.daemon.recording_term import Recording, attempt_on

TIMEOUT_S = 0.05


async def follow_to_its_end(rank: OneRank) -> None:
    await follow(0, A, rank.run(), following(rank))


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_follower, "RING_TIMEOUT_S", TIMEOUT_S)


async def test_a_ring_that_is_not_formed_in_time_is_given_up() -> None:
    with pytest.raises(TimedOutError, match="the MLX ring wasn't formed"):
        await follow_to_its_end(OneRank(Started(7, "cpu"), is_slow=True))


async def test_a_rank_that_has_joined_is_waited_for_as_long_as_it_takes() -> None:
    following = asyncio.ensure_future(
        follow_to_its_end(OneRank(Started(7, "cpu"), GangJoined("cpu", ""), is_slow=True))
    )
    done, _ = await asyncio.wait([following], timeout=3 * TIMEOUT_S)
    assert not done
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_an_island_reports_its_pseudo_gradient_and_nobody_takes_it_for_stuck() -> None:
    pseudo_gradient = PseudoGradientStored(
        ArtifactId("5" * 64), PseudoGradient("6" * 64, 960, 1.0, 12.5)
    )
    first = Progressed(0, 100, "steps", {"waiting": 1.0})
    steps = [Progressed(step, 100, "steps", {}) for step in (1, 2)]
    events = [first, *steps, pseudo_gradient, Progressed(2, 100, "steps", {"waiting": 1.0})]
    rank = OneRank(Started(7, "cpu"), GangJoined("cpu", ""), *events, is_slow=True)
    taken_in = following(rank, parent="p" * 16)
    task = asyncio.ensure_future(follow(0, A, rank.run(), taken_in))
    async with asyncio.timeout(5.0):
        while rank.pseudo_gradients.of(CYCLE, "6" * 64) is None:
            await rank.pseudo_gradients.news(0.1)
    reported = rank.pseudo_gradients.of(CYCLE, "6" * 64)
    assert reported is not None
    assert (reported.stored, reported.node) == (pseudo_gradient, A)
    assert rank.pseudo_gradients.is_training(CYCLE)
    assert not taken_in.watchdog.is_in_doubt(now_s() + 1e6)
    task.cancel()
    await asyncio.wait([task])


async def test_the_gang_and_its_note_are_shown() -> None:
    rank = OneRank(Started(7, "cpu"), GangJoined("gpu", "a note"), Finished(WorkResult({})))
    await follow_to_its_end(rank)
    (plain,) = rank.board.to_plain(1.0)
    seat: dict[str, Any] = plain["gang"][0]
    assert (seat["engine"], seat["device"], seat["pid"]) == ("mlx/ring", "gpu", 7)
    assert plain["detail"] == "a note"


async def test_how_far_and_how_fast_a_rank_is_itself_is_shown() -> None:
    values = {"tokens_per_s": 400.0, "rank_tokens_per_s": 100.04}
    step = Progressed(3, 100, "steps", values)
    rank = OneRank(Started(7, "cpu"), GangJoined("cpu", ""), step, Finished(WorkResult({})))
    await follow_to_its_end(rank)
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
    gang_plan = replace(LAUNCH, choice=EngineChoice(TORCH, (A, B), "as asked", backend))

    async def events() -> AsyncGenerator[WorkEvent]:
        for event in before:
            yield event
        raise CRASH

    with pytest.raises(WorkFailedError) as failed:
        await follow(0, A, events(), following(OneRank(), gang_plan))
    assert type(failed.value) is becomes
    assert failed.value.message.startswith(CRASH.message)


def test_a_checkpoint_that_found_no_room_is_shown_with_its_step() -> None:
    rank = OneRank()
    following(rank).take_in(0, A, CheckpointUnsaved(10, "no room left"))
    (plain,) = rank.board.to_plain(1.0)
    assert "without the checkpoint of step 10" in plain["detail"]


def test_only_the_steps_of_rank_0_are_those_of_the_gang() -> None:
    rank = OneRank()
    events = following(rank)
    events.take_in(1, B, Progressed(5, 100, "steps", {}))
    assert rank.board.to_plain(1.0)[0]["done"] == 0
    events.take_in(0, A, Progressed(4, 100, "steps", {}))
    assert rank.board.to_plain(1.0)[0]["done"] == 4


async def test_who_says_that_it_is_busy_is_waited_for_and_people_see_no_step_of_it() -> None:
    term, began_s = Recording(), now_s()
    supervisor = attempt_on(term, "")
    watchdog = supervisor._watch.watchdog = GangWatchdog(2, began_s)
    events = events_of(supervisor)
    for step in (1, 2, 3):
        events.take_in(0, A, Progressed(step, 100, "steps", {"loss": 2.0}))
    busy = Progressed(3, 100, "steps", {BUSY: 1.0})
    events.take_in(0, A, busy)
    looks = range(int(10 * LEAST_STEP_S / BEAT_S))
    for number in looks:
        for rank in range(2):
            watchdog.heard(rank, began_s + number * BEAT_S)
        assert not watchdog.look(began_s + number * BEAT_S)
    assert BUSY not in str(term.board.to_plain(now_s()))


async def test_a_killed_rank_is_named_though_another_one_finds_its_socket_closed_first() -> None:
    closed = WorkFailedError("alpha: the train worker ended with status 1: Connection closed")
    killed = WorkerKilledError("beta: the train worker (pid 7) was killed by SIGKILL")
    survivor_ended = asyncio.Event()

    async def breaks(error: JupiterError) -> AsyncGenerator[WorkEvent]:
        if error is closed:
            survivor_ended.set()
        else:
            await survivor_ended.wait()
        raise error
        yield Started(7, "cpu")

    async def follow_both() -> None:
        taken_in = following(OneRank())
        async with asyncio.TaskGroup() as group:
            for rank, error in enumerate((closed, killed)):
                group.create_task(follow(rank, (A, B)[rank], breaks(error), taken_in))

    with pytest.raises(ExceptionGroup) as caught:
        await follow_both()
    cause = root_cause(caught.value)
    assert isinstance(cause, WorkerKilledError)
    assert cause.message == "rank 1, beta: the train worker (pid 7) was killed by SIGKILL"
    assert cause.hint == killed.hint
