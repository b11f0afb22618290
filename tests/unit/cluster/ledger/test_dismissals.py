"""What people have dismissed stays so until it is over, and only trusted members silence."""

import random

import pytest

from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.cluster.health.dismissible import (
    LASTING,
    MAX_KEY_CHARACTERS,
    alarm_key,
    reports_its_end,
)
from jupiterd.cluster.ledger.dismissals import GRACE_S, SETTLE_S, DismissalWatch
from jupiterd.cluster.ledger.roster import entry_name
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.ids import NodeId
from tests.support.cluster.building import NODES, admitted
from tests.unit.cluster.ledger.test_trust import (
    BEGINNING,
    FOUNDER,
    GUEST,
    LET_IN,
    Placed,
    by,
    walked_in,
)

KEY = f"node-gone:{'a' * 32}"
OWN = NodeId("c" * 32)


def silenced(edit: int = 1, cause: str = "") -> AlarmDismissed:
    return AlarmDismissed(KEY, cause, is_over=False, edit=edit)


def over(edit: int = 2) -> AlarmDismissed:
    return AlarmDismissed(KEY, "", is_over=True, edit=edit)


def state_of(*placed: Placed) -> State:
    state = State()
    for order, fact in [*BEGINNING, *placed]:
        state.apply(fact, order)
    return state


def test_the_last_word_on_an_alarm_counts_in_whatever_order_the_words_come(seed: int) -> None:
    placed = [
        *by(FOUNDER, silenced()),
        *by(FOUNDER, over(), term=6),
        *by(FOUNDER, silenced(3, "x"), term=7),
    ]
    random.Random(seed).shuffle(placed)
    state = state_of(*placed)
    assert state.dismissals.in_force == {KEY: silenced(3, "x")}
    assert state.dismissals.edit(KEY) == 3
    again = State()
    for order, fact in state.placed():
        again.apply(fact, order)
    assert again == state
    assert (
        state_of(*by(FOUNDER, silenced()), *by(FOUNDER, over(), term=6)).dismissals.in_force == {}
    )


def test_who_walked_in_silences_nothing_and_may_let_ring_again() -> None:
    assert state_of(*by(GUEST, silenced())).dismissals.in_force == {}
    both = state_of(*by(FOUNDER, silenced()), *by(GUEST, silenced(2, "x"), term=6))
    assert both.dismissals.in_force == {KEY: silenced()}
    assert state_of(*by(FOUNDER, silenced()), *by(GUEST, over(), term=6)).dismissals.in_force == {}
    assert walked_in(GUEST) in [fact for _, fact in BEGINNING]


def test_who_was_removed_lets_nothing_ring_again() -> None:
    far = AlarmDismissed(KEY, "", is_over=True, edit=MAX_NUMBER)
    placed = [*by(FOUNDER, silenced()), *by(GUEST, far, term=99)]
    assert state_of(*placed).dismissals.in_force == {}
    known = NodeRemoved(GUEST, (entry_name(LET_IN),), {"u": 7})
    assert state_of(*placed, *by(FOUNDER, known)).dismissals.in_force == {KEY: silenced()}


def test_what_a_trusted_member_let_ring_before_it_was_removed_stays_so() -> None:
    yes, said = by(FOUNDER, admitted(GUEST)), by(GUEST, over(), term=7)
    known = NodeRemoved(GUEST, (entry_name(LET_IN), entry_name(yes[0][0])), {"u": 7})
    state = state_of(*yes, *by(FOUNDER, silenced(), term=6), *said, *by(FOUNDER, known, term=8))
    assert GUEST not in state.members
    assert state.dismissals.in_force == {}


def test_a_dismissal_counts_no_more_once_its_alarm_was_over_for_a_while() -> None:
    watch, dismissed = DismissalWatch(), {KEY}
    assert watch.look(0.0, dismissed, {KEY}) == []
    assert watch.look(GRACE_S - 1, dismissed, set()) == []
    assert watch.look(GRACE_S - 0.5, dismissed, {KEY}) == [], "it flaps"
    assert watch.look(2 * GRACE_S, dismissed, set()) == [KEY]
    assert watch.look(2 * GRACE_S + 2, dismissed, set()) == [KEY], "until the ledger says so"
    assert watch.look(2 * GRACE_S + 4, set(), set()) == []


def test_who_was_just_started_waits_until_it_can_know() -> None:
    watch = DismissalWatch()
    assert watch.look(0.0, {KEY}, set()) == []
    assert watch.look(SETTLE_S - 1, {KEY}, set()) == []
    assert watch.look(SETTLE_S, {KEY}, set()) == [KEY]


@pytest.mark.parametrize(
    ("code", "about", "leads", "asked_at", "tells"),
    [
        ("node-gone", NODES[0], True, NODES[1], True),
        ("node-gone", NODES[0], False, OWN, False),
        ("disk", "", False, NODES[1], True),
        ("contradiction", "a line", True, NODES[1], False),
        ("contradiction", "a line", False, OWN, True),
        ("contradiction", "a line", True, None, True),
        ("behind", NODES[0], True, NODES[1], False),
        ("behind", NODES[0], False, OWN, True),
    ],
)
def test_who_can_know_tells_that_it_is_over(
    code: str, about: str, asked_at: NodeId | None, *, leads: bool, tells: bool
) -> None:
    key = alarm_key(code, about, OWN)
    assert reports_its_end(key, OWN, leads=leads, asked_at=asked_at) is tells


def test_another_machines_own_view_is_its_own() -> None:
    key = alarm_key("disk", "", NODES[0])
    assert not reports_its_end(key, OWN, leads=True, asked_at=OWN)


def test_a_long_line_has_a_short_key_of_its_own() -> None:
    one, two = (alarm_key("no-effect", "x" * 900 + end, OWN) for end in "ab")
    assert one != two
    assert max(len(one), len(two)) <= MAX_KEY_CHARACTERS


def test_a_question_is_answered_and_not_dismissed() -> None:
    assert "node-waits" in LASTING
