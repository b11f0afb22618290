"""How long an item is tried: from the first failure since it last got on."""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.planning.placement import Seat
from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.phases.judge import ASKING
from jupiterd.daemon.cycles.judge_phase import LONGEST_S
from jupiterd.daemon.leader import work_item
from jupiterd.daemon.leader.retry_policy import A_WHILE_S, RetryPolicy
from jupiterd.daemon.leader.work_item import SPARED, ItemRunner
from jupiterd.daemon.runtime.work_events import (
    Finished,
    WorkEvent,
)
from jupiterd.errors import GeneratorUnreachableError, PeerUnreachableError
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import Progressed
from tests.support.cluster.building import CYCLE
from tests.support.daemon.term_parts import (
    FakeCalls,
    FakeMachines,
    FakePlacement,
    FakeTerm,
    services_of,
)

SILENT = GeneratorUnreachableError("the server is silent")
GONE = PeerUnreachableError("the machine is gone")
ITEM = WorkItem("r1/generate/0", Phase.GENERATE, ASKING)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(work_item, "now_s", lambda: self.now_s)
        monkeypatch.setattr(work_item.asyncio, "sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


Try = tuple[float, list[int], Exception | None]
"""How long it lasts, how far it says that it is, and how it ends."""


async def tried(clock: Clock, tries: Iterator[Try], **limits: Any) -> WorkCompleted:
    """Have an item done by a worker that does this, each time it is asked."""

    async def work(_: NodeId, __: object) -> AsyncGenerator[WorkEvent]:
        lasts_s, readings, error = next(tries)
        for done in readings:
            yield Progressed(done, 100, "prompts", {})
        clock.now_s += lasts_s
        if error is not None:
            raise error
        yield Finished(WorkResult({}, {}, {}))

    term, one = FakeTerm(), NodeId("one")
    term.know(CYCLE)
    placement = FakePlacement(FakeMachines(), [Seat(one, "hybrid", True, 0)])
    runner = ItemRunner(services_of(term, placement=placement, calls=FakeCalls(work)), CYCLE)
    return await runner.run(1, ITEM, is_needed=lambda: False, **limits)


def each_gets_on(times: int, error: Exception) -> Iterator[Try]:
    """Return tries of which each comes a little further before the same happens again."""
    yield from ((1.0, [0, 10 * n], error) for n in range(1, times + 1))
    yield (1.0, [100], None)


async def test_a_server_that_hiccups_now_and_then_is_not_given_up(clock: Clock) -> None:
    assert await tried(clock, each_gets_on(9, SILENT))


async def test_one_hiccup_after_hours_of_good_work_is_not_the_second_one(clock: Clock) -> None:
    tries: list[Try] = [(1.0, [0], SILENT), (7200.0, [0, 50], SILENT), (9.0, [0, 100], None)]
    assert await tried(clock, iter(tries))


async def test_a_server_that_fails_at_the_same_place_each_time_is_given_up(clock: Clock) -> None:
    tries: list[Try] = [(1.0, [0, 2], SILENT)] * 100
    with pytest.raises(GeneratorUnreachableError):
        await tried(clock, iter(tries))
    assert clock.now_s < 1000.0 + SPARED.elapsed_s


async def test_a_silent_server_is_given_up_however_long_it_is_silent_each_time(
    clock: Clock,
) -> None:
    tries: list[Try] = [(A_WHILE_S + 1.0, [0], SILENT)] * 3
    with pytest.raises(GeneratorUnreachableError):
        await tried(clock, iter(tries))


async def test_a_machine_is_waited_for_since_it_went_and_not_since_the_asking_began(
    clock: Clock,
) -> None:
    tries: list[Try] = [(2 * LONGEST_S, [0, 80], GONE), (1.0, [], GONE), (1.0, [100], None)]
    assert await tried(clock, iter(tries), longest_s=LONGEST_S)


async def test_a_machine_that_stays_away_is_not_waited_for_longer(clock: Clock) -> None:
    tries: list[Try] = [(0.0, [], GONE)] * 1000
    with pytest.raises(PeerUnreachableError, match="the machine is gone"):
        await tried(clock, iter(tries), longest_s=LONGEST_S)
    assert clock.now_s == pytest.approx(1000.0 + LONGEST_S, abs=2.0)


def test_what_others_had_done_already_is_no_progress_until_it_took_a_while() -> None:
    trying = RetryPolicy()
    trying.begin(0.0)
    trying.advance(50)
    assert trying.fail(10.0) == 0.0
    for began_s, ended_s, without_s in [(20.0, 30.0, 20.0), (30.0, 200.0, 0.0)]:
        trying.begin(began_s)
        trying.advance(0)
        trying.advance(40)
        assert trying.fail(ended_s) == without_s


async def test_an_item_that_fails_at_once_is_tried_ever_more_rarely(clock):
    tries = iter([*[(0.1, [], GONE)] * 9, (0.1, [], None)])
    began_s = clock.now_s
    await tried(clock, tries)
    pauses_s = clock.now_s - began_s - 10 * 0.1
    assert pauses_s == pytest.approx(1 + 2 + 4 + 8 + 5 * 15)


async def test_one_that_fails_after_a_while_is_tried_again_soon(clock):
    tries = iter([*[(60.0, [], GONE)] * 3, (0.1, [], None)])
    began_s = clock.now_s
    await tried(clock, tries)
    assert clock.now_s - began_s - 3 * 60.0 - 0.1 == pytest.approx(3)
