"""Who is a member, whatever comes first and however often."""

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.cluster.ledger.roster import Roster, RosterFact, entry_name
from jupiterd.ids import NodeId
from tests.support.cluster.building import NODES, admitted

A, B, E = NODES
FOUNDED: Order = (1, A, "a1", 1)
LET_IN: Order = (1, A, "a1", 2)
Placed = tuple[Order, RosterFact]
BEGINNING: list[Placed] = [(FOUNDED, admitted(A)), (LET_IN, admitted(B)), (LET_IN, admitted(E))]


def removed(node: NodeId, *admissions: Order, **last_seen: int) -> NodeRemoved:
    return NodeRemoved(node, tuple(map(entry_name, admissions)), last_seen)


def roster_of(facts: Sequence[Placed]) -> Roster:
    roster = Roster()
    for order, fact in facts:
        roster.apply(fact, order)
    return roster


def members(*more: Placed) -> set[NodeId]:
    return set(roster_of([*BEGINNING, *more]).members)


def test_everybody_who_was_admitted_is_a_member() -> None:
    assert members() == {A, B, E}


def test_who_is_removed_is_no_member_and_stays_known() -> None:
    roster = roster_of([*BEGINNING, ((2, A, "a2", 1), removed(B, LET_IN))])
    assert set(roster.members) == {A, E}
    assert roster.known(B) == admitted(B)
    assert roster.admitted_at(B) == LET_IN


def test_who_is_admitted_anew_is_a_member_again() -> None:
    again: Placed = ((3, A, "a2", 2), NodeAdmitted(B, "back", b"certificate", "let in again"))
    assert members(((2, A, "a2", 1), removed(B, LET_IN)), again) == {A, B, E}


def test_a_removal_outlives_a_merge_in_which_the_other_side_never_heard_of_it() -> None:
    theirs: Placed = ((9, B, "b1", 5), admitted(NodeId("n" * 32)))
    assert members(((2, A, "a2", 1), removed(B, LET_IN, b1=4)), theirs) == {A, E}


def test_what_a_removed_node_admitted_before_it_was_removed_counts() -> None:
    newcomer = NodeId("n" * 32)
    theirs: Placed = ((2, B, "b1", 4), admitted(newcomer))
    assert members(theirs, ((3, A, "a2", 1), removed(B, LET_IN, b1=4))) == {A, E, newcomer}


def test_of_two_that_remove_each_other_the_first_in_the_order_counts() -> None:
    first: Placed = ((2, A, "a2", 1), removed(B, LET_IN))
    second: Placed = ((3, B, "b1", 1), removed(A, FOUNDED))
    assert members(first, second) == {A, E}


def test_who_was_admitted_by_a_removed_node_afterwards_removes_nobody() -> None:
    accomplice = NodeId("n" * 32)
    assert members(
        ((2, A, "a2", 1), removed(B, LET_IN)),
        ((3, B, "b1", 1), admitted(accomplice)),
        ((4, accomplice, "n1", 1), removed(A, FOUNDED)),
    ) == {A, E}


def test_a_stranger_admits_and_removes_nobody() -> None:
    stranger = NodeId("s" * 32)
    assert members(((2, stranger, "s1", 1), removed(A, FOUNDED))) == {A, B, E}
    assert members(((2, stranger, "s1", 1), admitted(NodeId("n" * 32)))) == {A, B, E}


orders = st.tuples(
    st.integers(1, 4), st.sampled_from(NODES), st.sampled_from(["u1", "u2"]), st.integers(1, 4)
)
names = st.lists(orders.map(entry_name) | st.just(entry_name(LET_IN)), max_size=2).map(tuple)
seen = st.dictionaries(st.sampled_from(["u1", "u2"]), st.integers(0, 4))
removals = st.builds(NodeRemoved, st.sampled_from(NODES), names, seen)
some_facts = st.lists(
    st.tuples(orders, st.sampled_from(NODES).map(admitted) | removals), max_size=12
)


@given(some_facts, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_any_order_and_any_repetition_give_the_same_members(
    facts: list[Placed], rng: random.Random
) -> None:
    unique = list({(order, fact.node, type(fact)): (order, fact) for order, fact in facts}.values())
    expected = roster_of([*BEGINNING, *unique])
    again = [*BEGINNING, *unique, *unique[:3]]
    rng.shuffle(again)
    roster = roster_of(again)
    assert roster.members == expected.members
    assert roster.digest() == expected.digest()
    assert roster_of(list(roster.placed())).members == roster.members


def test_a_removed_node_makes_nobody_admit_itself() -> None:
    accomplice = NodeId("s" * 32)
    assert members(
        ((2, A, "a2", 1), removed(B, LET_IN)),
        ((3, B, "b1", 1), admitted(accomplice)),
        ((4, accomplice, "s1", 1), admitted(accomplice)),
    ) == {A, E}


def test_what_a_removed_node_decides_beyond_what_was_known_does_not_count() -> None:
    roster = roster_of([*BEGINNING, ((5, A, "a2", 1), removed(B, LET_IN, b1=2))])
    assert roster.may_decide((3, B, "b1", 2))
    assert not roster.may_decide((3, B, "b1", 3))
    assert roster.may_decide((9, A, "a2", 7))
