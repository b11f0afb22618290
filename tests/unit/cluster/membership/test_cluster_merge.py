"""What one cluster records of another makes nothing of the other one lost."""

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import (
    ClusterFounded,
    ClusterMerged,
    Fact,
    NodeAdmitted,
    NodeRemoved,
    PairingWindowSet,
    TokenIssued,
)
from jupiterd.cluster.ledger.entry import MAX_ENTRY_BYTES, EntryWriter
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.membership.admission import Admission, Summary, admit
from jupiterd.cluster.membership.cluster_merge import (
    absorbed_by,
    has_agreed,
    in_entries,
    leads_us,
    owed,
    removed_there,
)
from jupiterd.ids import ClusterId, NodeId
from tests.support.cluster.building import (
    CYCLE,
    admitted,
    adopted,
    checkpoint,
    closed,
    commanded,
    make_entry,
    opened,
    round_over,
    sample_facts,
    started,
    work_done,
)

ONE, OTHER = ClusterId("1" * 32), ClusterId("2" * 32)
A, B, C, D = (NodeId(letter * 32) for letter in "abcd")
OF_A, OF_C = EntryWriter(A, "u"), EntryWriter(C, "u")


def cluster(name: ClusterId, founder: EntryWriter, *more: Fact) -> Ledger:
    ledger = Ledger(name)
    first = [ClusterFounded(name[:4]), admitted(founder.node)]
    ledger.add(make_entry(ledger, 1, founder, first, name))
    return write(ledger, founder, more)


def write(ledger: Ledger, writer: EntryWriter, facts: Sequence[Fact]) -> Ledger:
    for fact in facts:
        term = max(ledger.highest_term(), 1)
        ledger.add(make_entry(ledger, term, writer, [fact], ledger.cluster))
    return ledger


def merge(ledger: Ledger, leader: EntryWriter, brought: Ledger) -> Ledger:
    for facts in in_entries(owed(ledger, brought)):
        ledger.add(make_entry(ledger, 1, leader, facts, ledger.cluster))
    return ledger


facts_of_others = st.lists(
    st.sampled_from([f for f in sample_facts() if not isinstance(f, NodeAdmitted | NodeRemoved)]),
    max_size=25,
)


@given(facts_of_others, facts_of_others)
@settings(max_examples=300, deadline=None)
def test_what_was_recorded_once_is_owed_no_more(ours: list[Fact], theirs: list[Fact]) -> None:
    one, other = cluster(ONE, OF_A, *ours), cluster(OTHER, OF_C, *theirs)
    merge(one, OF_A, other)
    assert owed(one, other) == []
    assert {A, C} <= set(one.state.members)
    assert absorbed_by(one.state, ONE) >= {OTHER}


@given(facts_of_others, facts_of_others, facts_of_others, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_halves_that_were_apart_come_in_any_order_and_any_number_of_times(
    common: list[Fact], near: list[Fact], far: list[Fact], rng: random.Random
) -> None:
    one = cluster(ONE, OF_A)
    halves = [cluster(OTHER, OF_C, *common, *more) for more in (near, far)]
    coming = halves * 3
    rng.shuffle(coming)
    for half in coming:
        merge(one, OF_A, half)
    assert owed(one, halves[0]) == owed(one, halves[1]) == []


def test_the_work_of_both_is_there_afterwards() -> None:
    one = cluster(ONE, OF_A, PairingWindowSet(is_open=False, edit=1))
    done = (
        started(rounds=1),
        work_done("r1/filter/0"),
        checkpoint("k1"),
        round_over("k1", 1, "k1"),
    )
    other = cluster(OTHER, OF_C, *done, PairingWindowSet(is_open=True, edit=9))
    merge(one, OF_A, other)
    cycle = one.state.cycles[CYCLE]
    assert (cycle.generator, cycle.rounds_committed, len(cycle.completed)) == ("k1", 1, 1)
    assert (one.state.label, one.state.window_open) == (ONE[:4], False)


def test_an_attempt_that_has_ended_in_one_half_is_not_opened_by_its_adoption_in_the_other() -> None:
    one = merge(cluster(ONE, OF_A), OF_A, cluster(OTHER, OF_C, opened(1), closed(1)))
    late = cluster(OTHER, OF_C, opened(1), adopted(1), closed(1))
    assert merge(one, OF_A, late).state.cycles[CYCLE].open_attempts == ()


def test_an_attempt_that_was_adopted_after_its_end_comes_open() -> None:
    other = cluster(OTHER, OF_C, opened(1), closed(1), adopted(1))
    assert other.state.cycles[CYCLE].open_attempts == (opened(1),)
    one = merge(cluster(ONE, OF_A), OF_A, other)
    assert one.state.cycles[CYCLE].open_attempts == (opened(1),)


def test_a_crash_in_the_middle_leaves_the_rest_owed() -> None:
    other = cluster(OTHER, OF_C, started(), checkpoint("k1"), checkpoint("k2", "k1", tokens=200))
    one = cluster(ONE, OF_A)
    for fact in owed(one, other):
        before = len(owed(one, other))
        write(one, OF_A, [fact])
        assert len(owed(one, other)) < before
    assert owed(one, other) == []


def test_who_was_removed_in_either_is_no_member_and_not_let_in() -> None:
    gone = NodeRemoved(B, (f"{C}/u/2",), {})
    other = cluster(OTHER, OF_C, admitted(B), gone)
    one = merge(cluster(ONE, OF_A), OF_A, other)
    assert B not in one.state.members
    assert admit(one.state, True, B)[0] is Admission.REFUSED
    with_it = merge(
        cluster(ONE, OF_A, admitted(B), TokenIssued("1" * 16, "2" * 32, 0)), OF_A, other
    )
    assert dict(with_it.state.tokens) == {}
    assert B not in with_it.state.members
    assert B in removed_there(with_it.state)


def test_who_was_removed_here_does_not_come_back_through_the_other() -> None:
    one = cluster(ONE, OF_A, admitted(B), NodeRemoved(B, (f"{A}/u/2",), {}))
    merge(one, OF_A, cluster(OTHER, OF_C, admitted(B), admitted(D)))
    assert set(one.state.members) == {A, C, D}


def test_who_the_far_half_removed_later_is_removed_when_it_returns() -> None:
    near = cluster(OTHER, OF_C, admitted(B))
    far = cluster(OTHER, OF_C, admitted(B), NodeRemoved(B, (f"{C}/u/2",), {}), admitted(D))
    one = merge(cluster(ONE, OF_A), OF_A, near)
    assert set(one.state.members) == {A, B, C}
    merge(one, OF_A, far)
    assert set(one.state.members) == {A, C, D}
    merge(one, OF_A, near)
    assert set(one.state.members) == {A, C, D}


def test_a_setting_of_the_past_changes_nothing() -> None:
    one = cluster(ONE, OF_A, started(), commanded("running", 5))
    merge(one, OF_A, cluster(OTHER, OF_C, started(), commanded("stopped", 5, "elsewhere")))
    assert one.state.cycles[CYCLE].wanted == "running"
    merge(one, OF_A, cluster(OTHER, OF_C, started(), commanded("stopped", 6)))
    assert one.state.cycles[CYCLE].wanted == "stopped"


def test_clusters_that_were_absorbed_before_come_along() -> None:
    other = merge(cluster(OTHER, OF_C), OF_C, cluster(ClusterId("3" * 32), EntryWriter(D, "u")))
    one = merge(cluster(ONE, OF_A), OF_A, other)
    assert absorbed_by(one.state, ONE) == {OTHER, ClusterId("3" * 32)}
    assert set(one.state.members) == {A, C, D}


def summary(ours: ClusterId, *absorbed: ClusterId) -> Summary:
    return Summary(ours, "home", False, True, None, 1, 1, frozenset(absorbed))


def test_of_two_that_absorbed_each_other_the_lesser_id_goes_on() -> None:
    assert leads_us(summary(OTHER), summary(ONE, OTHER))
    assert not leads_us(summary(ONE, OTHER), summary(OTHER))
    assert leads_us(summary(OTHER, ONE), summary(ONE, OTHER))
    assert not leads_us(summary(ONE, OTHER), summary(OTHER, ONE))
    assert not leads_us(summary(ONE, ONE), summary(ONE, ONE))


def test_agreeing_absorbs_nobody_yet_and_is_not_blank() -> None:
    other = cluster(OTHER, OF_C)
    assert other.state.blank
    write(other, OF_C, [ClusterMerged(OTHER, ONE)])
    assert has_agreed(other.state, OTHER, ONE)
    assert not has_agreed(other.state, ONE, OTHER)
    assert absorbed_by(other.state, OTHER) == frozenset()
    assert not other.state.blank


def test_every_entry_has_room_for_its_facts() -> None:
    facts: list[Fact] = [work_done(f"r1/filter/{number}" + "x" * 900) for number in range(200)]
    cut = list(in_entries(facts))
    assert [fact for each in cut for fact in each] == facts
    ledger = cluster(ONE, OF_A)
    for each in cut:
        assert len(make_entry(ledger, 1, OF_A, each, ONE).raw) < MAX_ENTRY_BYTES
