"""A member tells the largest number it can, and is removed; the others go on as before."""

import random

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import ClusterFounded, NodeRemoved, PairingWindowSet, RolePinned
from jupiterd.cluster.ledger.entry import EntryWriter, compose, parse, seal
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.election import Election
from jupiterd.cluster.membership.presence import (
    AnswerPreVote,
    Beat,
    BecomeLeader,
    Follow,
    PersistTerm,
    Presence,
    PreVoteAnswered,
    PreVoteRequested,
    RequestPreVote,
    RosterChanged,
    TermSeen,
)
from jupiterd.cluster.values.bounds import MAX_NUMBER, MAX_STEP
from jupiterd.errors import CorruptLedgerError, RefusedError
from jupiterd.ids import NodeId
from tests.support.cluster.building import CLUSTER, CYCLE, NODES, SIGNATURE, admitted, make_entry

ONE, OTHER, LIAR = NODES
HUGE = [2**53, 2**53 - 1, 2**63 - 1, 2**64 - 1, 2 * MAX_STEP]
"""What ends a cluster that takes it for a term: no room is above, or nobody is heard there."""


def present(node: NodeId, term: int) -> Presence:
    made = Presence(node, term, 0.0, random.Random(7))
    made.step(0.0, RosterChanged(frozenset(NODES) - {node}))
    return made


def leader_and_follower() -> tuple[Presence, Presence]:
    """Two nodes in term 4, of which the first leads and the second follows."""
    one, other = present(ONE, 3), present(OTHER, 3)
    one.election._lead(4, "it was elected")
    other.step(0.1, one.beat(0.1, OTHER))
    assert other.election.leader == ONE
    return one, other


def go_on(one: Presence, other: Presence) -> None:
    """The liar is removed; the leader is heard, and so is the next one after it has gone."""
    for node in (one, other):
        node.step(1.0, RosterChanged(frozenset({ONE, OTHER}) - {node._self_id}))
    other.step(1.1, one.beat(1.1, OTHER))
    one.step(1.1, other.beat(1.1, ONE))
    other.step(1.2, one.beat(1.2, OTHER))
    assert (other.election.leader, other.election.term) == (ONE, one.election.term)
    other.election._leader = None
    other.election._win("the first one has gone")
    one.step(1.3, RosterChanged(frozenset()))
    assert compose(CLUSTER, other.election.term, EntryWriter(OTHER, "l"), 1, "", [admitted(OTHER)])
    assert other.election.term < MAX_STEP


@pytest.mark.parametrize("term", HUGE)
def test_a_huge_term_in_a_heartbeat_changes_nothing(term: int) -> None:
    one, other = leader_and_follower()
    for leader in (LIAR, ONE, None):
        for node in (one, other):
            assert node.step(0.2, Beat(LIAR, term, leader, 99, 99, runs_gang=True)) == []
    assert one.election.term == other.election.term == 4
    go_on(one, other)


@pytest.mark.parametrize("term", HUGE)
def test_a_huge_term_in_a_pre_vote_changes_nothing(term: int) -> None:
    one, other = leader_and_follower()
    (answer,) = other.step(0.2, PreVoteRequested(LIAR, term, 99))
    assert isinstance(answer, AnswerPreVote)
    assert (answer.granted, answer.term) == (False, 4)
    assert "far above" in answer.reason
    other.election._leader = None
    (asked,) = other.election._ask(0.3)
    assert isinstance(asked, RequestPreVote)
    assert other.step(0.4, PreVoteAnswered(LIAR, granted=True, term=term)) == []
    assert other.election.term == 4
    other.step(0.5, PreVoteAnswered(ONE, granted=False, term=4))
    other.step(0.6, one.beat(0.6, OTHER))
    go_on(one, other)


def test_a_term_that_elections_can_have_come_to_is_believed() -> None:
    one, _ = leader_and_follower()
    effects = one.step(0.2, Beat(LIAR, 4 + MAX_STEP, LIAR, 99, 99, echo_s=0.2))
    assert [type(effect) for effect in effects if not isinstance(effect, Follow)][-1] is PersistTerm
    assert one.election.term == 4 + MAX_STEP


def founded(term: int = 1) -> Ledger:
    ledger = Ledger(CLUSTER)
    ledger.add(
        make_entry(ledger, term, EntryWriter(ONE, "a"), [ClusterFounded("home"), admitted(ONE)])
    )
    more = [admitted(OTHER), admitted(LIAR)]
    ledger.add(make_entry(ledger, term, EntryWriter(ONE, "a"), more))
    return ledger


def raw_entry(term: int, index: int = 1, *facts: object) -> bytes:
    """What a member can sign whose program bounds nothing."""
    from jupiterd.cluster.ledger import entry

    told = [["WindowSet", 1, {"is_open": True, "edit": 1}], *facts]
    body = entry._pack([CLUSTER, term, LIAR, "liar", index, "", told])
    return seal(body, SIGNATURE)


@pytest.mark.parametrize("term", [2**53, 2**63 - 1, 2**64 - 1])
def test_an_entry_of_a_term_out_of_bounds_is_none(term: int) -> None:
    with pytest.raises(CorruptLedgerError, match="out of bounds"):
        parse(raw_entry(term))


@pytest.mark.parametrize(
    "fact",
    [
        ["WindowSet", 1, {"is_open": True, "edit": 2**53}],
        ["WindowSet", 1, {"is_open": True, "edit": -(2**53)}],
        ["NodeRemoved", 1, {"node": "x", "admissions": [], "last_seen": {"l": 2**63}}],
        ["CycleExtended", 1, {"cycle": CYCLE, "rounds": 2**64 - 1, "edit": 1}],
        ["Later", 9, {"deep": [{"number": 2**53}]}],
        ["Later", 2**53, {}],
        ["Later", 9, {"loss": float("inf")}],
    ],
)
def test_a_fact_with_a_number_out_of_bounds_is_none(fact: object) -> None:
    with pytest.raises(CorruptLedgerError):
        parse(raw_entry(1, 1, fact))


def test_an_entry_far_above_all_that_is_known_is_refused() -> None:
    ledger = founded()
    ledger.check_near(4, 4 + MAX_STEP)
    with pytest.raises(CorruptLedgerError, match="far above"):
        ledger.check_near(4, 5 + MAX_STEP)
    ledger.check_near(0, 1 + MAX_STEP)  # its own entries count as known


def test_entries_of_a_removed_member_raise_the_highest_term_no_more() -> None:
    ledger = founded()
    ledger.add(make_entry(ledger, 900_000, EntryWriter(LIAR, "b"), [PairingWindowSet(True, 1)]))
    assert ledger.highest_term() == 900_000
    removal = NodeRemoved(LIAR, ledger.state.roster.admissions_of(LIAR), {})
    ledger.add(make_entry(ledger, 2, EntryWriter(ONE, "a"), [removal]))
    assert LIAR not in ledger.state.members
    assert ledger.highest_term() == 2


def test_a_setting_at_the_bound_is_outdone_by_a_later_entry() -> None:
    state = State()
    liars = (5, LIAR, "l", 1)
    state.apply(PairingWindowSet(is_open=False, edit=MAX_NUMBER), liars)
    state.apply(RolePinned(ONE, "idle", MAX_NUMBER), liars)
    state.apply(PairingWindowSet(is_open=True, edit=MAX_NUMBER), (6, ONE, "a", 1))
    state.apply(RolePinned(ONE, "train", MAX_NUMBER), (6, ONE, "a", 1))
    assert state.window_open
    assert state.pins[ONE].role == "train"


def test_an_attempt_of_the_largest_number_leaves_room_for_the_next() -> None:
    state = State()
    for attempt in (1, 7, MAX_NUMBER):
        state.apply(
            AttemptOpened(CYCLE, 1, attempt, (ONE,), "torch", "", 0), (1, ONE, "a", attempt)
        )
    assert state.cycles[CYCLE].next_attempt == 8


def test_who_leads_goes_above_a_term_in_which_somebody_else_has_written() -> None:
    """Of settings with equal numbers the later entry's counts: ours is to be the later one."""
    leads = Election(ONE, 4, 0.0, random.Random(7))
    leads._lead(5, "alone")
    assert leads.step(1.0, TermSeen(5)) == []
    (_, led) = leads.step(1.0, TermSeen(5, is_of_others=True))
    assert isinstance(led, BecomeLeader)
    assert led.term == 6
    follows = Election(ONE, 5, 0.0, random.Random(7))
    assert follows.step(1.0, TermSeen(5, is_of_others=True)) == []


def test_a_number_that_people_give_is_refused_and_not_recorded() -> None:
    with pytest.raises(RefusedError, match="too large"):
        compose(
            CLUSTER, 1, EntryWriter(ONE, "a"), 1, "", [PairingWindowSet(is_open=True, edit=2**70)]
        )
