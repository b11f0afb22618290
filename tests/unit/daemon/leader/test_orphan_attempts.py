"""Where groups met that had both trained, one gang goes on and the other is closed."""

import asyncio

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import Fact
from jupiterd.daemon.leader import orphan_attempts
from jupiterd.daemon.leader.orphan_attempts import REASON, close_strays
from jupiterd.errors import DiskFullError
from jupiterd.ids import CycleId, NodeId
from tests.support.daemon.term_parts import FakeTerm

CYCLE, A = CycleId("c" * 32), NodeId("a" * 32)
OURS, THEIRS = 13, 14


class Term(FakeTerm):
    """A term that follows one attempt."""

    def __init__(self, *epochs: int) -> None:
        super().__init__(A)
        self.know(CYCLE)
        self.failures = 0
        for attempt in epochs:
            self.open(attempt)

    @property
    def closed(self) -> list[AttemptClosed]:
        return [fact for fact in self.recorded if isinstance(fact, AttemptClosed)]

    def open(self, attempt: int) -> None:
        opened = AttemptOpened(CYCLE, 1, attempt, (A,), "mlx", "", 0)
        self.cycle(CYCLE).apply(opened, (1, A, "u", attempt))

    async def record(self, *facts: Fact) -> None:
        if self.failures:
            self.failures -= 1
            raise DiskFullError("no room")
        await super().record(*facts)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_attempts, "LOOK_S", 0.001)
    monkeypatch.setattr(orphan_attempts, "MEETING_S", 0.05)


async def closed_within(term: Term, timeout_s: float) -> list[int]:
    task = asyncio.ensure_future(close_strays(term, CYCLE, OURS))
    await asyncio.wait([task], timeout=timeout_s)
    assert not task.done()
    task.cancel()
    assert {fact.reason for fact in term.closed} <= {REASON}
    return [fact.attempt for fact in term.closed]


async def test_what_stays_open_beside_the_attempt_that_is_followed_is_closed() -> None:
    assert await closed_within(Term(OURS, THEIRS, 9), 0.5) == [9, THEIRS]


async def test_what_has_just_been_seen_may_be_of_the_leader_that_stays() -> None:
    assert await closed_within(Term(OURS, THEIRS), 0.02) == []


async def test_nothing_is_closed_by_one_whose_own_attempt_is_over() -> None:
    assert await closed_within(Term(THEIRS), 0.2) == []


async def test_a_close_that_finds_no_room_is_tried_again() -> None:
    term = Term(OURS, THEIRS)
    term.failures = 2
    assert await closed_within(term, 0.5) == [THEIRS]
