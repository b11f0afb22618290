import random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import Fact, PairingWindowSet, UnknownFact
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.cluster.ledger.state import State
from tests.support.cluster.building import CYCLE, NODES, admitted, commanded, sample_facts, started

Placed = tuple[Fact, Order]

orders = st.tuples(
    st.integers(1, 3), st.sampled_from(NODES), st.sampled_from(["u1", "u2"]), st.integers(1, 3)
)
placed_facts = st.lists(st.tuples(st.sampled_from(sample_facts()), orders), min_size=1, max_size=40)


def folded(facts: list[Placed]) -> State:
    state = State()
    for fact, order in facts:
        state.apply(fact, order)
    return state


def at(term: int, node: int = 0, index: int = 1) -> Order:
    return term, NODES[node], "u", index


def test_the_facts_that_the_next_tests_draw_from_are_of_every_kind() -> None:
    assert {type(fact) for fact in sample_facts()} == set(get_args(Fact))


@given(placed_facts, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_any_order_and_any_repetition_give_the_same_state(
    facts: list[Placed], rng: random.Random
) -> None:
    expected = folded(facts)
    again = facts + rng.choices(facts, k=len(facts))
    rng.shuffle(again)
    actual = folded(again)
    assert actual == expected
    for cycle, state in expected.cycles.items():
        assert actual.cycles[cycle].canonical_branch() == state.canonical_branch()
        assert actual.cycles[cycle].other_leaves() == state.other_leaves()
        assert actual.cycles[cycle].leaves() == state.leaves()
        assert actual.cycles[cycle].has_nothing_to_do == state.has_nothing_to_do
        assert actual.cycles[cycle].verdicts == state.verdicts
        assert actual.cycles[cycle].open_attempts == state.open_attempts


@given(placed_facts, placed_facts)
@settings(max_examples=100, deadline=None)
def test_two_histories_unite_to_one_state_from_either_side(
    ours: list[Placed], theirs: list[Placed]
) -> None:
    assert folded(ours + theirs) == folded(theirs + ours)


@given(placed_facts, placed_facts, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_a_snapshot_adopted_in_the_middle_changes_nothing(
    ours: list[Placed], theirs: list[Placed], rng: random.Random
) -> None:
    summed_up = [(fact, order) for order, fact in folded(theirs).placed()]
    cut = rng.randrange(len(ours) + 1)
    actual = folded(ours[:cut] + summed_up + ours[cut:])
    expected = folded(ours + theirs)
    assert actual == expected
    for cycle, state in expected.cycles.items():
        assert actual.cycles[cycle].leaves() == state.leaves()


def test_states_that_differ_in_one_fact_are_not_equal() -> None:
    assert folded([(started(), at(1))]) != folded([(started(rounds=3), at(1))])
    assert folded([(started(), at(1))]) != folded([(started(), at(2))])


def test_the_first_admission_in_the_order_is_in_force() -> None:
    early, late = admitted(NODES[1]), admitted(NODES[1])
    state = folded([(late, at(5)), (early, at(2))])
    assert state.admitted_at(NODES[1]) == at(2)
    assert state.admitted_at(NODES[2]) is None


def test_of_concurrent_edits_closing_the_window_wins() -> None:
    state = folded([(PairingWindowSet(False, 3), at(1)), (PairingWindowSet(True, 3), at(9))])
    assert not state.window_open
    assert state.window_edit == 3
    state.apply(PairingWindowSet(True, 4), at(2))
    assert state.window_open


def test_the_window_is_open_until_the_cluster_has_work() -> None:
    state = State()
    assert state.window_open
    state.apply(commanded("running", 1), at(1))
    assert state.window_open  # nobody has started it yet, as far as is known here
    state.apply(started(), at(1))
    assert not state.window_open
    state.apply(PairingWindowSet(True, 1), at(2))
    assert state.window_open


@pytest.mark.parametrize(
    "fact",
    [started(), PairingWindowSet(False, 1), commanded("stopped", 1), UnknownFact("New", 1, {})],
)
def test_what_must_not_be_lost_makes_a_cluster_no_longer_blank(fact: Fact) -> None:
    state = folded([(admitted(NODES[0]), at(1)), (PairingWindowSet(True, 1), at(1))])
    assert state.blank
    state.apply(fact, at(2))
    assert not state.blank


def test_a_cluster_that_was_ever_closed_stays_not_blank_when_it_opens_again() -> None:
    state = folded([(PairingWindowSet(False, 1), at(1)), (PairingWindowSet(True, 2), at(1))])
    assert state.window_open
    assert not state.blank


def test_facts_of_one_entry_are_told_apart_by_what_they_say() -> None:
    facts: list[Placed] = [(commanded("stopped", 1), at(1)), (commanded("running", 1), at(1))]
    assert folded(facts) == folded(facts[::-1])


def test_every_cycle_of_which_anything_is_known_is_kept() -> None:
    assert set(folded([(commanded("stopped", 1), at(1))]).cycles) == {CYCLE}


@given(placed_facts)
@settings(max_examples=200, deadline=None)
def test_the_facts_in_force_make_an_equal_state(facts: list[Placed]) -> None:
    whole = folded(facts)
    summed_up = [(fact, order) for order, fact in whole.placed()]
    assert folded(summed_up) == whole
    for cycle, state in whole.cycles.items():
        assert folded(summed_up).cycles[cycle].leaves() == state.leaves()
    assert folded(summed_up).blank == whole.blank
