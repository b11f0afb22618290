"""How the leader follows the ranks of a gang."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.engines import MLX, EngineChoice
from jupiterd.cycle.phases import TrainRound
from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.cycle.work import Phase, WorkResult
from jupiterd.daemon import gang_conductor
from jupiterd.daemon.gang_conductor import GangConductor
from jupiterd.daemon.launch import Launch
from jupiterd.daemon.leading import Leading
from jupiterd.daemon.progress import ProgressBoard
from jupiterd.daemon.work_events import Finished, Joined, Started, WorkEvent, WorkOrder
from jupiterd.errors import NoLeaderError, TimedOutError
from jupiterd.ids import ArtifactId, CycleId, NodeId

CYCLE = CycleId("c" * 16)
A, B = NodeId("a"), NodeId("b")
LAUNCH = Launch(3, EngineChoice(MLX, (A, B), "as asked"), "", 0, 0.0)
RING = ("127.0.0.1:4001", "127.0.0.1:4002")
TIMEOUT_S = 0.05


class OneRank:
    """As much of a term of leading as following a rank needs: its events come from a list."""

    def __init__(self, *events: WorkEvent, is_slow: bool = False) -> None:
        self.board = ProgressBoard()
        self.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
        self._events = events
        self._is_slow = is_slow

    async def run(self, _node: NodeId, _order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        for event in self._events:
            yield event
        if self._is_slow:
            await asyncio.Event().wait()


async def follow(rank: OneRank, ring: tuple[str, ...]) -> None:
    conductor = GangConductor(
        cast("Leading", rank), CYCLE, 1, cast("ModelShape", None), cast("TrainPlan", None)
    )
    conductor._show(LAUNCH, {})
    await conductor._follow(0, A, WorkOrder("x", 1, "train_mlx", {"ring": ring}, {}), LAUNCH)


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_conductor, "RING_TIMEOUT_S", TIMEOUT_S)


async def test_a_ring_that_is_not_formed_in_time_is_given_up() -> None:
    with pytest.raises(TimedOutError, match="the MLX ring wasn't formed"):
        await follow(OneRank(Started(7, "cpu"), is_slow=True), RING)


async def test_a_rank_that_has_joined_is_waited_for_as_long_as_it_takes() -> None:
    following = asyncio.ensure_future(
        follow(OneRank(Started(7, "cpu"), Joined("cpu", ""), is_slow=True), RING)
    )
    done, _ = await asyncio.wait([following], timeout=3 * TIMEOUT_S)
    assert not done
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_the_gang_and_its_note_are_shown() -> None:
    rank = OneRank(Started(7, "cpu"), Joined("gpu", "a note"), Finished(WorkResult({})))
    await follow(rank, RING)
    (plain,) = rank.board.to_plain(1.0)
    seat: dict[str, Any] = plain["gang"][0]
    assert (seat["engine"], seat["device"], seat["pid"]) == ("mlx", "gpu", 7)
    assert plain["detail"] == "a note"


class LostTerm:
    """A term that ends while an epoch runs; whatever is asked of it afterwards is refused."""

    def __init__(self) -> None:
        self.is_over = False
        self.asked = 0

    def cycle(self, _cycle: CycleId) -> CycleState:
        self.asked += 1
        if self.asked > 2:  # the epoch has begun
            self.is_over = True
            raise NoLeaderError("this node no longer leads")
        return CycleState()


async def test_training_ends_with_the_term_even_where_the_cancel_was_lost() -> None:
    term = LostTerm()
    conductor = GangConductor(
        cast("Leading", term), CYCLE, 1, cast("ModelShape", None), cast("TrainPlan", None)
    )
    step = TrainRound(ArtifactId("s"), ArtifactId("t"))
    with pytest.raises(ExceptionGroup) as ended:
        await conductor.train(step)
    assert ended.group_contains(NoLeaderError)
