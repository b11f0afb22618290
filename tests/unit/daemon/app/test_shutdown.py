"""How long a daemon that is told to stop waits for its last step, and what it says before."""

import asyncio
from dataclasses import dataclass, field

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.app.shutdown import STEP_S, UNFOLLOWED_S, Shutdown
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.ids import CycleId, NodeId
from tests.support.daemon.shapes import tiny_shape

pytestmark = pytest.mark.looptime

EPOCH = 3
CYCLE = CycleId("cycle-1-of-many")
ORDER = WorkOrder("cycle-1/r1/train/3/0", 1, "train", {"shape": tiny_shape().to_plain()}, {}, EPOCH)


@dataclass(frozen=True)
class Stopping:
    """A rank that stops after its running step."""

    is_followed: bool
    order: WorkOrder = ORDER


@dataclass
class Leaving:
    """Work, ledger and heartbeats that note down what becomes of them on the way out."""

    is_followed: bool = True
    ranks: int = 1
    done: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self._cycle = CycleState()
        self.state = State()
        self.state.cycles[CYCLE] = self._cycle
        self.version = 0

    def finish_steps(self) -> list[Stopping]:
        self.done.append("finish steps")
        return [Stopping(self.is_followed)] * self.ranks

    async def changed_since(self, version: int) -> int:
        while self.version == version:
            await self._news.wait()
        return self.version

    def record_end(self) -> None:
        self._cycle.apply(AttemptClosed(CYCLE, EPOCH, "finished", 1.0), (1, NodeId("a"), "u", 1))
        self.version += 1
        self._news.set()

    async def say_goodbye(self) -> None:
        self.done.append("goodbye")

    async def end_all(self, _: Exception) -> None:
        self.done.append("end")


async def left(node: Leaving, stopping: Shutdown) -> float:
    """Return how long it took."""
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await stopping.leave("node-1", node, node, node)
    assert node.done == ["finish steps", "goodbye", "end"]
    return clock() - began_s


async def test_where_nothing_trains_nothing_is_waited_for() -> None:
    assert await left(Leaving(ranks=0), Shutdown()) == 0.0


async def test_it_says_goodbye_as_soon_as_its_last_step_is_recorded() -> None:
    node = Leaving()
    asyncio.get_running_loop().call_later(2.0, node.record_end)
    assert await left(node, Shutdown()) == pytest.approx(2.0, abs=0.01)


async def test_a_step_that_does_not_end_is_waited_for_no_longer_than_any_may_take() -> None:
    assert STEP_S <= await left(Leaving(), Shutdown()) <= STEP_S + 10.0


async def test_where_nobody_leads_nobody_records_it() -> None:
    assert await left(Leaving(is_followed=False), Shutdown()) == pytest.approx(
        UNFOLLOWED_S, abs=0.5
    )


async def test_who_asks_twice_does_not_want_to_wait() -> None:
    stopping = Shutdown()
    stopping.ask()
    asyncio.get_running_loop().call_later(1.0, stopping.ask)
    assert await left(Leaving(), stopping) == pytest.approx(1.0, abs=0.01)
    stopping.ask()  # and a third time changes nothing
