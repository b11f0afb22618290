"""Who is heard, or named, and can't be reached."""

import logging
from typing import Any, cast

import pytest

from jupiterd.cluster.links.unreached import Reached
from jupiterd.daemon.links import dial_schedule, unreachable_peers
from jupiterd.daemon.links.dial_schedule import DialSchedule
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.links.unreachable_peers import FAILING_S, FAILURES, UnreachablePeers
from jupiterd.ids import NodeId
from jupiterd.net.announcement_times import AnnouncementTimes
from jupiterd.ports import Address

THERE = Address("10.57.0.2", 47470)
ELSEWHERE = Address("fe80::2%eth0", 47470)
CA2 = NodeId("c" * 32)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class LinkTo:
    """A link to a member that tells one address, or did."""

    node, name, addresses = CA2, "ca2", (str(THERE),)

    def paths(self) -> list[Address]:
        return [ELSEWHERE]


class Looking:
    def __init__(self, clock: Clock, *, is_linked: bool = False, works: bool = False) -> None:
        self._clock = clock
        self.addresses = DialSchedule(lambda _address: False)
        peers = cast("Peers", [cast("Peer", LinkTo())] if is_linked else [])
        self.look = UnreachablePeers(self.addresses, peers, lambda _node: works)
        self.look.announced = AnnouncementTimes(clock)

    def fails(self, reached: Reached = Reached.NOTHING, times: int = FAILURES) -> None:
        """Try the address so often, over as long as it takes to be told of."""
        self.addresses.note(THERE)
        for _ in range(times):
            attempt = self.addresses[THERE]
            attempt.begin()
            self._clock.now += FAILING_S / times
            attempt.reach(reached)
            attempt.fail()
            attempt.end()

    def found(self) -> list[tuple[str, Reached, str]]:
        self.look.look()
        return [(each.address, each.reached, each.name) for each in self.look.found]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(dial_schedule, "now_s", clock)
    monkeypatch.setattr(unreachable_peers, "now_s", clock)
    return clock


def test_who_is_announced_since_it_cannot_be_reached_is_told(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    looking = Looking(clock)
    looking.look.announced.note(THERE)
    looking.fails()
    assert looking.found() == []
    assert looking.look.announced.doubted == {THERE}, "the network is asked anew for it"
    looking.look.announced.note(THERE)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            assert looking.found() == [(str(THERE), Reached.NOTHING, "")]
        looking.addresses[THERE].succeed()
        assert looking.found() == []
    assert [each.message for each in caplog.records] == ["unreached", "unreached_over"]


def test_a_machine_that_is_switched_off_is_no_riddle(clock: Clock) -> None:
    """It was announced before it stopped answering, and not since."""
    looking = Looking(clock)
    looking.look.announced.note(THERE)
    clock.now += 60
    looking.fails()
    assert looking.found() == []


def test_a_daemon_that_was_killed_is_no_riddle_either(clock: Clock) -> None:
    looking = Looking(clock)
    looking.fails(Reached.REFUSED)
    looking.look.announced.note(THERE)
    assert looking.found() == []


@pytest.mark.parametrize("reached", list(Reached))
def test_who_is_named_is_told_of_however_it_fails(clock: Clock, reached: Reached) -> None:
    looking = Looking(clock)
    looking.look.named = lambda: frozenset({THERE})
    looking.fails(reached)
    assert looking.found() == [(str(THERE), reached, "")]


def test_a_member_that_works_elsewhere_is_reached(clock: Clock) -> None:
    looking = Looking(clock, is_linked=True, works=True)
    looking.fails()
    looking.look.announced.note(THERE)
    assert looking.found() == []


def test_a_member_that_works_nowhere_is_told_by_its_name(clock: Clock) -> None:
    looking = Looking(clock, is_linked=True)
    looking.fails(Reached.CONNECTED)
    assert looking.found() == [(str(THERE), Reached.CONNECTED, "ca2")]


def test_a_member_that_is_gone_is_not_told_of_twice(clock: Clock) -> None:
    looking = Looking(clock, is_linked=True)
    looking.look.named = lambda: frozenset({THERE})
    looking.fails(Reached.NOTHING)
    assert looking.found() == []


def test_one_failure_or_a_few_seconds_of_them_are_not_told_of(clock: Clock) -> None:
    looking = Looking(clock)
    looking.look.named = lambda: frozenset({THERE})
    looking.fails(times=1)
    assert looking.found() == []
    looking = Looking(clock)
    looking.look.named = lambda: frozenset({THERE})
    looking.fails()
    looking.addresses[THERE].failing_since_s = clock.now - 1
    assert looking.found() == []


def test_this_daemon_is_not_told_of_itself(clock: Clock) -> None:
    looking = Looking(clock)
    looking.look.named = lambda: frozenset({THERE})
    looking.fails()
    cast("Any", looking.addresses[THERE]).is_ours = True
    assert looking.found() == []
