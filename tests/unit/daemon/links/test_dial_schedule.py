"""When an address is tried again."""

import asyncio

import pytest

from jupiterd.daemon.links import dial_schedule
from jupiterd.daemon.links.dial_schedule import (
    LAST_RETRY_S,
    LOOK_AGAIN_S,
    MAX_ADDRESSES,
    TICK_S,
    DialSchedule,
)
from jupiterd.ids import NodeId
from jupiterd.ports import Address

HERE = Address("192.0.2.1", 47470)
BOB = NodeId("b" * 32)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(dial_schedule, "now_s", clock)
    return clock


def addresses(*in_use: Address) -> DialSchedule:
    known = DialSchedule(lambda address: address in in_use)
    known.note(HERE)
    return known


def due(known: DialSchedule) -> list[Address]:
    return [address for address, _ in known.due()]


def test_waits_grow_up_to_half_a_minute(clock: Clock) -> None:
    known = addresses()
    waits: list[float] = []
    for _ in range(8):
        known[HERE].begin()
        known[HERE].end()
        waits.append(known[HERE].due_s - clock.now)
        clock.now = known[HERE].due_s
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LAST_RETRY_S, LAST_RETRY_S]


def test_an_address_is_not_tried_twice_at_once(clock: Clock) -> None:
    known = addresses()
    known[HERE].begin()
    clock.now += 60.0
    known.hasten(HERE)
    assert due(known) == []
    known[HERE].end()
    assert due(known) == [HERE]


def test_who_has_waited_longest_comes_first(clock: Clock) -> None:
    known = addresses()
    clock.now += 1.0
    later = Address("192.0.2.2", 47470)
    known.note(later)
    assert due(known) == [HERE, later]


def test_what_was_announced_is_tried_before_what_is_only_remembered(clock: Clock) -> None:
    known = DialSchedule(lambda _: False)
    old = [Address("192.0.2.7", port) for port in range(1, 129)]
    known.note_saved(old)
    clock.now += 1.0
    known.note(HERE)
    assert due(known) == [HERE, *old]
    known[HERE].begin()
    known[HERE].end()
    clock.now += 1.0
    assert due(known) == [*old, HERE]
    known.note(HERE)
    clock.now += 1.0
    assert due(known)[0] == HERE


def test_another_way_to_a_linked_node_has_no_hurry(clock: Clock) -> None:
    known = addresses()
    known[HERE].begin()
    known[HERE].put_off(BOB)
    known[HERE].end()
    clock.now += LOOK_AGAIN_S - 1.0
    known.recall(lambda node: node == BOB)
    assert due(known) == []
    clock.now += 1.0
    assert due(known) == [HERE]


def test_another_way_is_tried_at_once_when_the_link_is_no_more(clock: Clock) -> None:
    known = addresses()
    known[HERE].begin()
    known[HERE].put_off(BOB)
    known[HERE].end()
    clock.now += 1.0
    known.recall(lambda _: False)
    assert due(known) == [HERE]
    known[HERE].begin()
    known[HERE].end()
    known.recall(lambda _: False)
    assert due(known) == []


def test_members_are_asked_twice_a_minute_for_one_that_is_out_of_reach(clock: Clock) -> None:
    known = addresses()
    known[HERE].begin()
    known[HERE].put_off(BOB)
    known[HERE].end()
    known.ask_around()
    clock.now += LAST_RETRY_S - 1.0
    assert due(known) == []
    clock.now += 1.0
    assert due(known) == [HERE]


def test_what_is_in_use_is_not_forgotten_for_something_new() -> None:
    known = addresses(HERE)
    for number in range(1, 2 * MAX_ADDRESSES):
        known.note(Address("192.0.2.9", number))
    assert len(known) == MAX_ADDRESSES
    assert HERE in known


async def test_a_pause_ends_as_soon_as_an_address_is_new() -> None:
    known = addresses()
    known[HERE].due_s = dial_schedule.now_s() + 600.0
    async with asyncio.timeout(60.0):
        pause = asyncio.ensure_future(known.pause(dial_schedule.now_s() + 600.0))
        await asyncio.sleep(0)
        known.note_new(Address("192.0.2.2", 1))
        await pause


async def test_a_pause_ends_when_an_address_is_due_or_its_time_is_over() -> None:
    known = addresses()
    async with asyncio.timeout(60.0):
        await known.pause(dial_schedule.now_s() + 600.0)
        known[HERE].begin()
        await known.pause(dial_schedule.now_s() + TICK_S / 10)


async def test_news_without_end_let_nobody_look_all_the_time() -> None:
    known, looks = addresses(), 0
    began_s = dial_schedule.now_s()
    while dial_schedule.now_s() - began_s < 5 * TICK_S:
        known.hasten(HERE)
        await known.pause(dial_schedule.now_s() + 600.0)
        looks += 1
    assert looks <= 6
