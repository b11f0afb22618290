"""What people are told of the door."""

import pytest

from jupiterd.cluster.facts.facts import Fact, PairingWindowSet
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.admission_policy import (
    CLOSED,
    NEVER_WORKED,
    OPENED,
    TRUSTS_LAN,
    closes_by_itself,
    door,
)
from tests.support.cluster.building import started

OPEN, SHUT = PairingWindowSet(is_open=True, edit=2), PairingWindowSet(is_open=False, edit=1)


def state(*facts: Fact) -> State:
    folded = State()
    for index, fact in enumerate(facts):
        folded.apply(fact, (1, "n", "u", index))
    return folded


@pytest.mark.parametrize(
    ("facts", "expected", "closes"),
    [
        ((), (True, NEVER_WORKED), False),
        ((SHUT,), (False, CLOSED), False),
        ((SHUT, OPEN), (True, NEVER_WORKED), False),
        ((started(),), (False, CLOSED), False),
        ((started(), SHUT, OPEN), (True, OPENED), True),
    ],
)
def test_the_door_is_as_last_set_and_closes_once_there_is_work(
    facts: tuple[Fact, ...], expected: tuple[bool, str], closes: bool
) -> None:
    assert door(state(*facts), trusts_lan=False) == expected
    assert closes_by_itself(state(*facts)) == closes


def test_a_leader_that_trusts_its_network_leaves_no_door_closed() -> None:
    assert door(state(started(), SHUT), trusts_lan=True) == (True, TRUSTS_LAN)
