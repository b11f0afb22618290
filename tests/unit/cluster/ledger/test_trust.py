"""Who is trusted in a cluster, and what the word of others doesn't bring about."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    ClusterMerged,
    Fact,
    NodeAdmitted,
    NodeRemoved,
    PairingWindowLocked,
    PairingWindowSet,
    SourcePurged,
    TokenIssued,
)
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.entry import EntryWriter
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.cluster.ledger.roster import MAX_NAMED_ADMISSIONS, entry_name
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.admission_policy import shut_with
from jupiterd.cluster.membership.cluster_merge import owed
from jupiterd.ids import ArtifactId, ClusterId, NodeId
from tests.support.cluster.building import CYCLE, NODES, admitted, data_asked, started, training
from tests.unit.cluster.membership.test_cluster_merge import cluster

FOUNDER, GUEST, OTHER = NODES
FRIEND = NodeId("f" * 32)
FOUNDED: Order = (1, FOUNDER, "u", 1)
LET_IN: Order = (1, FOUNDER, "u", 2)
SHUT: Order = (2, FOUNDER, "u", 3)
Placed = tuple[Order, Fact]


def walked_in(node: NodeId) -> NodeAdmitted:
    return NodeAdmitted(node, node[:1], b"certificate of " + node.encode(), WALKED_IN)


BEGINNING: list[Placed] = [
    (FOUNDED, admitted(FOUNDER)),
    (LET_IN, walked_in(GUEST)),
    (LET_IN, walked_in(OTHER)),
]


def by(author: NodeId, *facts: Fact, term: int = 5) -> list[Placed]:
    return [((term, author, "u", place), fact) for place, fact in enumerate(facts, 7)]


def state_of(*placed: Placed) -> State:
    state = State()
    for order, fact in [*BEGINNING, *placed]:
        state.apply(fact, order)
    return state


def removal(node: NodeId, *admissions: Order) -> NodeRemoved:
    return NodeRemoved(node, tuple(map(entry_name, admissions)), {})


def test_the_founder_is_trusted_and_who_walks_in_is_a_member_like_others() -> None:
    state = state_of()
    assert set(state.members) == set(NODES)
    assert state.roster.trusted == {FOUNDER}


def test_members_of_before_the_change_are_trusted() -> None:
    old = NodeAdmitted(GUEST, "old", b"certificate", "the pairing window is open")
    state = State()
    for order, fact in [(FOUNDED, admitted(FOUNDER)), (LET_IN, old)]:
        state.apply(fact, order)
    assert state.roster.trusted == {FOUNDER, GUEST}


def test_somebody_on_a_trusted_member_says_yes() -> None:
    state = state_of(*by(FOUNDER, admitted(GUEST)))
    assert state.roster.trusted == {FOUNDER, GUEST}
    later = state_of(*by(FOUNDER, admitted(GUEST)), *by(GUEST, admitted(OTHER), term=6))
    assert later.roster.trusted == set(NODES), "and may do so itself from then on"


def test_two_newcomers_do_not_vouch_for_each_other() -> None:
    state = state_of(*by(GUEST, admitted(OTHER), admitted(GUEST)), *by(OTHER, admitted(GUEST)))
    assert state.roster.trusted == {FOUNDER}


def test_what_was_said_before_a_yes_counts_for_no_more_after_it() -> None:
    early = by(GUEST, admitted(OTHER), removal(FOUNDER, FOUNDED), term=2)
    state = state_of(*early, *by(FOUNDER, admitted(GUEST)))
    assert state.roster.trusted == {FOUNDER, GUEST}
    assert FOUNDER in state.members


def test_what_stands_after_a_yes_in_the_order_counts_as_that_of_any_trusted_member() -> None:
    shut = shut_by(state_of(), FOUNDER, started())
    late = by(GUEST, walked_in(FRIEND), term=9)
    assert FRIEND not in state_of(*shut, *late).members
    trusted = state_of(*shut, *late, *by(FOUNDER, admitted(GUEST), term=8))
    assert FRIEND in trusted.members, "nobody can say whether it was written before the yes"
    assert FRIEND not in trusted.roster.trusted


def test_whom_nobody_trusts_removes_nobody() -> None:
    assert set(state_of(*by(GUEST, removal(FOUNDER, FOUNDED))).members) == set(NODES)


def test_it_lets_others_walk_in_until_the_door_was_shut() -> None:
    friend = by(GUEST, admitted(FRIEND))
    assert FRIEND in state_of(*friend).members
    assert FRIEND not in state_of(*friend).roster.trusted
    for shut in (PairingWindowSet(is_open=False, edit=1), started()):
        state = state_of(*friend, (SHUT, shut))
        assert FRIEND not in state.members
        assert not state.roster.was_removed(FRIEND), "a trusted member may let it in"
        anew = state_of(*friend, (SHUT, shut), *by(FOUNDER, admitted(FRIEND), term=6))
        assert FRIEND in anew.roster.trusted


def shut_by(state: State, author: NodeId, *facts: Fact, term: int = 8) -> list[Placed]:
    """What a leader writes as it shuts the door, knowing what this state says."""
    return [((term, author, "u", 9), fact) for fact in (*facts, *shut_with(state, author, facts))]


def test_what_is_dated_back_to_before_the_door_was_shut_lets_nobody_in() -> None:
    for shutting in (PairingWindowSet(is_open=False, edit=1), started(), data_asked(), training()):
        shut = shut_by(state_of(), FOUNDER, shutting)
        assert set(state_of(*shut, *by(GUEST, admitted(FRIEND), term=2)).members) == set(NODES)
        known = by(GUEST, walked_in(FRIEND), term=2)
        told = state_of(*known, *shut_by(state_of(*known), FOUNDER, shutting))
        assert FRIEND in told.members
        assert not told.roster.was_removed(FRIEND)


def test_nor_does_it_bring_back_whom_somebody_has_removed() -> None:
    friend = by(GUEST, walked_in(FRIEND), term=2)
    shut = shut_by(state_of(*friend), FOUNDER, started())
    removed = by(FOUNDER, removal(FRIEND, friend[0][0]), term=9)
    again = by(GUEST, SourcePurged("python", "docs"), walked_in(FRIEND), term=2)
    assert FRIEND not in state_of(*friend, *shut, *removed, again[1]).members


def test_only_a_trusted_leader_names_who_was_in_and_only_once() -> None:
    assert shut_with(state_of(), GUEST, [started()]) == ()
    assert shut_with(state_of(), FOUNDER, [PairingWindowSet(is_open=True, edit=1)]) == ()
    by_guest = state_of(*by(GUEST, walked_in(FRIEND)), *by(OTHER, PairingWindowLocked(())))
    assert FRIEND in by_guest.members
    assert not by_guest.roster.is_named
    named = state_of(*shut_by(state_of(), FOUNDER, started()))
    assert shut_with(named, FOUNDER, [PairingWindowSet(is_open=False, edit=2)]) == ()


def test_a_door_that_somebody_else_or_an_older_version_shut_is_made_up_for() -> None:
    old = state_of(*by(FOUNDER, started()))
    assert old.roster.is_shut
    assert shut_with(old, FOUNDER) == (PairingWindowLocked(()),)
    by_guest = state_of(*by(GUEST, PairingWindowSet(is_open=False, edit=1)))
    assert not by_guest.roster.is_shut
    assert shut_with(by_guest, FOUNDER) == (PairingWindowLocked(()),)
    made_up = state_of(*by(GUEST, started()), *by(FOUNDER, PairingWindowLocked(()), term=6))
    assert made_up.roster.is_shut, "also for who leads without a yes"


def test_more_friends_than_a_cluster_has_room_for_are_not_all_named() -> None:
    friends = [NodeId(f"{number:032x}") for number in range(2 * MAX_NAMED_ADMISSIONS)]
    (shut,) = shut_with(state_of(*by(GUEST, *map(walked_in, friends))), FOUNDER, [started()])
    assert len(shut.admissions) == MAX_NAMED_ADMISSIONS


def test_whom_it_let_in_before_stays_and_its_own_word_shuts_no_door() -> None:
    friend = by(GUEST, admitted(FRIEND))
    assert FRIEND in state_of(*friend, ((9, FOUNDER, "u", 3), started())).members
    assert FRIEND in state_of(*friend, *by(OTHER, started(), term=2)).members


def test_its_opening_token_purge_merge_and_promotion_count_for_nothing() -> None:
    steered = StudentSteered(CYCLE, 1, ArtifactId("5" * 64), is_promoted=True, edit=9)
    facts: list[Fact] = [
        PairingWindowSet(is_open=True, edit=9),
        TokenIssued("t" * 16, "s" * 32, 0),
        SourcePurged("python", "docs"),
        ClusterMerged(ClusterId("c" * 32), ClusterId("d" * 32), (FOUNDER,)),
        steered,
    ]
    shut = (SHUT, PairingWindowSet(is_open=False, edit=1))
    ignored = state_of(shut, *by(GUEST, *facts, term=3))
    assert not ignored.window_open
    assert ignored.tokens == {}
    assert ignored.purged("python", CYCLE) == ignored.barred == frozenset()
    assert [*ignored.merges, *ignored.cycles[CYCLE].steered_after(1)] == []
    believed = state_of(shut, *by(GUEST, *facts, term=3), *by(FOUNDER, *facts, term=4))
    assert believed.window_open, "another's word hides none of a trusted member"
    assert believed.tokens
    assert believed.purged("python", CYCLE) == {"docs"}
    assert list(believed.merges)
    assert believed.cycles[CYCLE].steered_after(1) == (steered,)


def test_its_word_is_not_taken_along_into_another_cluster() -> None:
    here, there = ClusterId("1" * 32), ClusterId("2" * 32)
    for author, taken in ((GUEST, 0), (FOUNDER, 1)):
        brought = cluster(there, EntryWriter(FOUNDER, "u"), walked_in(GUEST), started())
        for order, fact in by(author, SourcePurged("python", "docs")):
            brought.state.apply(fact, order)
        facts = owed(cluster(here, EntryWriter(OTHER, "u")), brought)
        assert sum(isinstance(fact, SourcePurged) for fact in facts) == taken
        reasons = {fact.node: fact.reason for fact in facts if isinstance(fact, NodeAdmitted)}
        assert reasons[GUEST] == WALKED_IN != reasons[FOUNDER]


authors = st.sampled_from([*NODES, FRIEND])
orders = st.tuples(st.integers(1, 6), authors, st.sampled_from(["u", "v"]), st.integers(3, 9))
admissions = st.one_of(authors.map(admitted), authors.map(walked_in))
names = st.lists(orders.map(entry_name) | st.just(entry_name(LET_IN)), max_size=2).map(tuple)
removals = st.builds(NodeRemoved, authors, names, st.dictionaries(st.just("u"), st.integers(0, 9)))
windows = st.builds(PairingWindowSet, st.booleans(), st.integers(1, 5))
purges = st.builds(SourcePurged, st.just("python"), st.sampled_from(["docs", "wiki"]))
some_facts = st.lists(
    st.tuples(orders, admissions | removals | windows | purges | st.just(started())), max_size=12
)


def told(state: State) -> tuple[object, ...]:
    purged = state.purged("python", CYCLE)
    return dict(state.members), state.roster.trusted, state.window_open, state.window_edit, purged


@given(some_facts, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_any_order_any_repetition_and_any_sum_give_the_same(
    facts: list[Placed], rng: random.Random
) -> None:
    unique = list({order: (order, fact) for order, fact in facts}.values())
    expected = state_of(*unique)
    again = [*unique, *unique[:3]]
    rng.shuffle(again)
    shuffled = state_of(*again)
    assert told(shuffled) == told(expected)
    assert shuffled.digest() == expected.digest()
    summed_up = State()
    for order, fact in expected.placed():
        summed_up.apply(fact, order)
    assert told(summed_up) == told(expected)


@given(some_facts)
@settings(max_examples=150, deadline=None)
def test_nothing_that_others_write_makes_them_trusted_or_takes_it_from_the_founder(
    facts: list[Placed],
) -> None:
    theirs = [placed for placed in facts if placed[0][1] != FOUNDER]
    state = state_of(*theirs)
    assert state.roster.trusted == {FOUNDER}
    assert {FOUNDER, GUEST, OTHER} <= set(state.members)
    assert not state.purged("python", CYCLE)


by_others = some_facts.map(lambda facts: [placed for placed in facts if placed[0][1] != FOUNDER])


@given(by_others, by_others, st.integers(2, 9))
@settings(max_examples=150, deadline=None)
def test_once_the_door_is_shut_nobody_comes_in_by_what_others_write_whatever_its_date(
    early: list[Placed], late: list[Placed], term: int
) -> None:
    # A replica holds one entry of each index of a ledger: it refuses any other of that index.
    taken = {entry_name(order) for order, _ in early}
    later = [placed for placed in late if entry_name(placed[0]) not in taken]
    shut = shut_by(state_of(*early), FOUNDER, started(), term=term)
    before, after = state_of(*early, *shut), state_of(*early, *shut, *later)
    assert set(after.members) == set(before.members)
    assert set(before.members) <= set(state_of(*early).members)
