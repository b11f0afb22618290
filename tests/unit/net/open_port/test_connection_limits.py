"""Each address holds a few connections, and no stranger one of a member's."""

from contextlib import ExitStack

import pytest

from jupiterd.errors import TooOftenError
from jupiterd.net.open_port.connection_limits import (
    ALL_MEMBERS,
    ALL_STRANGERS,
    EACH_MEMBER,
    EACH_STRANGER,
    FEW,
    LEFT_FOR_FEW,
    ConnectionLimits,
)
from jupiterd.net.server import BEHIND_FRONT

MEMBER = "10.0.0.1"
STRANGER = "10.0.0.9"


@pytest.fixture
def places() -> ConnectionLimits:
    return ConnectionLimits(lambda host: host == MEMBER)


def held(places: ConnectionLimits, stack: ExitStack, host: str, wanted: int) -> int:
    """Hold as many places for an address as it gets; return how many those are."""
    for number in range(wanted):
        try:
            stack.enter_context(places.hold(host))
        except TooOftenError:
            return number
    return wanted


def test_an_address_holds_a_few_and_gets_back_what_it_gives_back(places: ConnectionLimits) -> None:
    with ExitStack() as stack:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER
    with ExitStack() as stack:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER


def test_strangers_of_many_addresses_leave_a_member_its_places(places: ConnectionLimits) -> None:
    with ExitStack() as stack:
        hosts = [f"10.1.0.{number}" for number in range(1 + ALL_STRANGERS // EACH_STRANGER)]
        taken = [held(places, stack, host, EACH_STRANGER) for host in hosts]
        assert sum(taken) == ALL_STRANGERS
        with pytest.raises(TooOftenError, match="strangers hold 256"), places.hold("10.2.0.1"):
            pass
        assert held(places, stack, MEMBER, 300) == EACH_MEMBER


def test_a_stranger_that_becomes_a_member_gives_back_what_it_took_as_one() -> None:
    members: set[str] = set()
    places = ConnectionLimits(members.__contains__)
    with ExitStack() as stack, ExitStack() as later:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER
        members.add(STRANGER)
        assert held(places, later, STRANGER, 300) == EACH_MEMBER
    members.clear()
    with ExitStack() as stack:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER


def test_a_member_of_many_addresses_leaves_others_a_few_places_each() -> None:
    places = ConnectionLimits(lambda _: True)
    with ExitStack() as stack:
        taken = [held(places, stack, f"10.1.0.{number}", 300) for number in range(10)]
        assert sum(taken) == ALL_MEMBERS - LEFT_FOR_FEW + 2 * FEW
        assert held(places, stack, MEMBER, 300) == FEW
        for number in range(300):
            held(places, stack, f"10.2.0.{number}", 300)
        with pytest.raises(TooOftenError, match="members hold 640"), places.hold("10.3.0.1"):
            pass


def test_the_server_behind_has_room_for_all() -> None:
    behind = dict(BEHIND_FRONT)["grpc.max_allowed_incoming_connections"]
    assert behind > ALL_MEMBERS + ALL_STRANGERS
