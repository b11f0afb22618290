"""Sequences are shared out by speed: no other division is done sooner."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.training.batch_shares import (
    FIRST_LOOK_STEPS,
    LOOK_EVERY_STEPS,
    WINDOW_STEPS,
    Balance,
    equal_shares,
    shares_among,
    shares_by_rate,
    step_time_s,
)
from jupiterd.errors import Bug

RATES = st.lists(st.floats(0.01, 1_000), min_size=1, max_size=8)


@given(RATES, st.integers(8, 200))
def test_every_sequence_is_shared_out_and_nobody_stands_idle(
    rates: list[float], batch: int
) -> None:
    shares = shares_by_rate(batch, rates)
    assert sum(shares) == batch
    assert min(shares) >= 1


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=3), st.integers(3, 12))
def test_no_other_division_is_done_sooner(rates: list[float], batch: int) -> None:
    ours = step_time_s(shares_by_rate(batch, rates), rates)
    others = itertools.product(range(1, batch + 1), repeat=len(rates))
    best = min(step_time_s(shares, rates) for shares in others if sum(shares) == batch)
    assert ours == pytest.approx(best)


def test_a_rank_three_times_slower_takes_a_third() -> None:
    assert shares_by_rate(16, [3.0, 1.0]) == (12, 4)


def test_who_has_several_ranks_takes_one_for_each_however_slow_they_are() -> None:
    assert shares_by_rate(12, [300.0, 1.0, 100.0], [1, 4, 1]) == (6, 4, 2)
    with pytest.raises(Bug):
        shares_by_rate(5, [1.0, 1.0], [2, 4])


def test_equal_ranks_take_equal_shares_and_the_first_ones_the_rest() -> None:
    assert equal_shares(8, 3) == (3, 3, 2)


def test_fewer_sequences_than_ranks_cannot_be_shared() -> None:
    with pytest.raises(Bug):
        equal_shares(2, 3)


def test_ranks_that_are_not_ready_take_nothing() -> None:
    assert shares_among(8, [True, False, True, True]) == (3, 0, 3, 2)
    with pytest.raises(Bug):
        shares_among(8, [False])


def balance() -> Balance:
    return Balance(16, equal_shares(16, 2))


def test_nothing_changes_before_the_ranks_are_warm() -> None:
    gang = balance()
    assert not any(gang.measured([3.0, 1.0]) for _ in range(FIRST_LOOK_STEPS - 1))
    assert gang.measured([3.0, 1.0])
    assert gang.shares == (12, 4)


def test_a_hiccup_of_one_step_changes_nothing() -> None:
    gang = balance()
    steps = [[1.0, 1.0]] * (LOOK_EVERY_STEPS - 1) + [[0.05, 1.0]]
    assert not any(gang.measured(rates) for rates in steps)


def test_a_gain_too_small_to_notice_changes_nothing() -> None:
    gang = Balance(100, equal_shares(100, 2))
    assert not any(gang.measured([1.0, 0.95]) for _ in range(5 * LOOK_EVERY_STEPS))


def test_a_rank_that_slows_down_for_good_is_relieved() -> None:
    gang = balance()
    for _ in range(LOOK_EVERY_STEPS):
        gang.measured([1.0, 1.0])
    for _ in range(LOOK_EVERY_STEPS + WINDOW_STEPS):
        gang.measured([1.0, 0.25])
    assert gang.shares == (13, 3)


def test_a_rate_that_could_not_be_measured_counts_for_nothing() -> None:
    gang = balance()
    assert not any(gang.measured([0.0, 1.0]) for _ in range(LOOK_EVERY_STEPS))


def test_one_rank_alone_keeps_everything() -> None:
    gang = Balance(16, equal_shares(16, 1))
    assert not any(gang.measured([1.0]) for _ in range(LOOK_EVERY_STEPS))
    assert gang.shares == (16,)


@given(st.lists(st.lists(st.floats(0, 10), min_size=3, max_size=3), max_size=50))
def test_ranks_that_hear_the_same_divide_alike(steps: list[list[float]]) -> None:
    one, other = (Balance(12, equal_shares(12, 3)) for _ in range(2))
    for rates in steps:
        assert one.measured(rates) == other.measured(list(rates))
        assert one.shares == other.shares
