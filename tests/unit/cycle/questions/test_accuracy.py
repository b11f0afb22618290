"""Shares with intervals, and the difference of two models on the same questions."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.questions.accuracy import Accuracy, PairedAccuracy, accuracy, by_topic, compared

ROUNDING = 1e-12


def test_the_interval_is_wilson_s():
    found = Accuracy(8, 10).interval
    assert (found.low, found.high) == (
        pytest.approx(0.4902, abs=1e-4),
        pytest.approx(0.9433, abs=1e-4),
    )
    assert Accuracy(0, 20).interval.low == 0
    assert Accuracy(0, 20).interval.high == pytest.approx(0.1611, abs=1e-4)
    assert (Accuracy(0, 0).share, Accuracy(0, 0).interval.high) == (0, 1)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_what_is_seen_lies_in_its_interval(pairs: list[tuple[bool, bool]]):
    first, second = [each for each, _ in pairs], [each for _, each in pairs]
    share, both = accuracy(first), compared(first, second)
    assert 0 <= share.interval.low <= share.share + ROUNDING
    assert share.share - ROUNDING <= share.interval.high <= 1
    assert -1 <= both.interval.low <= both.difference <= both.interval.high <= 1
    assert both.difference * max(1, len(pairs)) == pytest.approx(sum(first) - sum(second))
    turned = compared(second, first)
    assert turned.interval.low == pytest.approx(-both.interval.high)


def test_of_models_that_are_equally_good_one_in_twenty_is_called_better_or_worse():
    chance = random.Random(11)
    called = 0
    for _ in range(2000):
        rows = [(chance.random() < 0.6, chance.random() < 0.6) for _ in range(100)]
        found = compared([a for a, _ in rows], [b for _, b in rows]).interval
        called += not found.low <= 0 <= found.high
    assert 0.02 < called / 2000 < 0.065


def test_a_clear_difference_is_shown_and_a_small_one_is_not():
    assert PairedAccuracy(200, 40, 10).interval.low > 0
    assert PairedAccuracy(200, 12, 10).interval.low < 0


def test_topics_stand_alone_and_what_has_none_is_left_out():
    found = by_topic(["b", "a", "", "b"], [True, False, True, False])
    assert found == {"a": Accuracy(0, 1), "b": Accuracy(1, 2)}
    assert list(found) == ["a", "b"]
