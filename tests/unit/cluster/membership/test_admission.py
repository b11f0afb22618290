from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.admission import (
    MAX_MEMBERS,
    Admission,
    Meeting,
    Summary,
    admit,
    choose,
    meet,
)
from jupiterd.ids import ClusterId, NodeId
from tests.support.cluster.building import NODES, admitted

BLANK = Summary(ClusterId("5" * 32), "home", True, True, None, 0, 1)
LARGE = replace(BLANK, cluster=ClusterId("9" * 32), members=3)
LATER = replace(BLANK, cluster=ClusterId("6" * 32))
BUSY = Summary(ClusterId("7" * 32), "office", False, True, NODES[0], 4, 2)
CLOSED = replace(BUSY, cluster=ClusterId("8" * 32), label="lab", open=False)

summaries = st.builds(
    Summary,
    st.sampled_from([ClusterId(digit * 32) for digit in "123"]),
    st.just("label"),
    st.booleans(),
    st.booleans(),
    st.none(),
    st.integers(0, 3),
    st.integers(1, 3),
)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (BLANK, replace(BLANK, members=9), Meeting.SAME),
        (BLANK, BUSY, Meeting.JOIN_THEIRS),
        (BUSY, BLANK, Meeting.AWAIT_THEIRS),
        (BLANK, CLOSED, Meeting.PENDING),
        (CLOSED, BLANK, Meeting.AWAIT_THEIRS),
        (BUSY, CLOSED, Meeting.APART),
        (BLANK, LARGE, Meeting.JOIN_THEIRS),
        (LARGE, BLANK, Meeting.AWAIT_THEIRS),
        (BLANK, LATER, Meeting.AWAIT_THEIRS),
        (LATER, BLANK, Meeting.JOIN_THEIRS),
        (LATER, replace(BLANK, open=False), Meeting.PENDING),
    ],
)
def test_what_comes_of_a_meeting(ours: Summary, theirs: Summary, expected: Meeting) -> None:
    meeting, reason = meet(ours, theirs, known_member=False)
    assert meeting is expected
    assert reason


def test_a_node_that_a_closed_cluster_knows_already_comes_back_in() -> None:
    assert meet(BLANK, CLOSED, known_member=True)[0] is Meeting.JOIN_THEIRS


@pytest.mark.parametrize(("ours", "theirs"), [(BLANK, CLOSED), (CLOSED, BLANK)])
def test_both_sides_of_a_closed_door_name_the_command_that_opens_it(
    ours: Summary, theirs: Summary
) -> None:
    assert "jupiterctl cluster open" in meet(ours, theirs, known_member=False)[1]


@given(summaries, summaries, st.booleans())
def test_never_do_both_dissolve_nor_both_wait(ours: Summary, theirs: Summary, known: bool) -> None:
    here, there = meet(ours, theirs, known)[0], meet(theirs, ours, known)[0]
    for side in (Meeting.SAME, Meeting.APART):
        assert (here is side) == (there is side)
    if here not in (Meeting.SAME, Meeting.APART):
        assert (here is Meeting.AWAIT_THEIRS) != (there is Meeting.AWAIT_THEIRS)


def test_a_fresh_node_between_two_clusters_with_work_joins_neither() -> None:
    chosen, reason = choose(BLANK, [BUSY, CLOSED, LARGE])
    assert chosen is None
    assert "office" in reason
    assert "lab" in reason


@pytest.mark.parametrize(
    ("ours", "sightings", "expected"),
    [
        (BLANK, [], None),
        (BLANK, [replace(BLANK, blank=False)], None),  # an older sight of our own cluster
        (BLANK, [BUSY, replace(BUSY, members=5), LARGE], BUSY.cluster),
        (BLANK, [LATER], None),
        (LATER, [BLANK], BLANK.cluster),
        (LATER, [BLANK, LARGE], LARGE.cluster),
        (BUSY, [LARGE], None),
    ],
)
def test_which_cluster_a_node_chooses(
    ours: Summary, sightings: list[Summary], expected: ClusterId | None
) -> None:
    chosen, reason = choose(ours, sightings)
    assert chosen == expected
    assert reason


def test_the_leader_lets_in_while_the_window_is_open() -> None:
    assert admit(State(), True, NODES[0])[0] is Admission.ADMITTED
    decision, reason = admit(State(), False, NODES[0])
    assert decision is Admission.PENDING
    assert "jupiterctl cluster open" in reason


def test_a_member_is_let_in_again_by_a_closed_and_full_cluster_and_nobody_else_is() -> None:
    state = State()
    for number in range(MAX_MEMBERS):
        state.apply(admitted(NodeId(f"{number:032x}")), (1, NodeId("0" * 32), "u", 1))
    assert admit(state, False, NodeId(f"{3:032x}"))[0] is Admission.ADMITTED
    assert admit(state, True, NODES[0])[0] is Admission.REFUSED


def test_who_was_removed_is_not_let_in_by_an_open_window() -> None:
    state = State()
    at = (1, NODES[0], "u", 1)
    for node in NODES:
        state.apply(admitted(node), at)
    removed = NodeRemoved(NODES[1], state.roster.admissions_of(NODES[1]), {})
    state.apply(removed, (2, NODES[0], "u", 2))
    decision, reason = admit(state, True, NODES[1])
    assert (decision, reason) == (Admission.REFUSED, "it was removed from the cluster")
    assert admit(state, True, NODES[1], "a token")[0] is Admission.REFUSED


def test_a_newcomer_whose_version_is_too_far_away_is_refused_even_with_a_token() -> None:
    apart = "more than one minor version apart"
    assert admit(State(), True, NODES[0], "t0ken", apart) == (Admission.REFUSED, apart)


def test_a_stranger_is_told_of_a_cluster_at_work_its_id_its_label_and_whether_it_is_open() -> None:
    merged = replace(BUSY, absorbed=frozenset({ClusterId("a" * 32), ClusterId("b" * 32)}))
    bare = Summary(BUSY.cluster, "office", False, True, None, 0, 0)
    assert merged.for_stranger(None) == merged.for_stranger(ClusterId("c" * 32)) == bare
    mine = ClusterId("a" * 32)
    assert merged.for_stranger(mine) == replace(bare, absorbed=frozenset({mine}))
    assert BLANK.for_stranger(None).members == BLANK.members
