"""Each address holds a few connections, and no stranger one of a member's."""

from contextlib import ExitStack

import pytest

from jupiterd.errors import TooOftenError
from jupiterd.net.open_port.places import ALL_STRANGERS, EACH_MEMBER, EACH_STRANGER, Places

MEMBER = "10.0.0.1"
STRANGER = "10.0.0.9"


@pytest.fixture
def places() -> Places:
    return Places(lambda host: host == MEMBER)


def held(places: Places, stack: ExitStack, host: str, wanted: int) -> int:
    """Hold as many places for an address as it gets; return how many those are."""
    for number in range(wanted):
        try:
            stack.enter_context(places.hold(host))
        except TooOftenError:
            return number
    return wanted


def test_an_address_holds_a_few_and_gets_back_what_it_gives_back(places: Places) -> None:
    with ExitStack() as stack:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER
    with ExitStack() as stack:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER


def test_strangers_of_many_addresses_leave_a_member_its_places(places: Places) -> None:
    with ExitStack() as stack:
        hosts = [f"10.1.0.{number}" for number in range(1 + ALL_STRANGERS // EACH_STRANGER)]
        taken = [held(places, stack, host, EACH_STRANGER) for host in hosts]
        assert sum(taken) == ALL_STRANGERS
        with pytest.raises(TooOftenError, match="strangers hold 256"), places.hold("10.2.0.1"):
            pass
        assert held(places, stack, MEMBER, 300) == EACH_MEMBER


def test_a_stranger_that_becomes_a_member_gives_back_what_it_took_as_one() -> None:
    members: set[str] = set()
    places = Places(members.__contains__)
    with ExitStack() as stack, ExitStack() as later:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER
        members.add(STRANGER)
        assert held(places, later, STRANGER, 300) == EACH_MEMBER
    members.clear()
    with ExitStack() as stack:
        assert held(places, stack, STRANGER, 300) == EACH_STRANGER
