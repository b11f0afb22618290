"""Positions that go out, come back, and go out again."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.positions import Positions, Range, at, read, split, written
from jupiterd.errors import Bug


def each(ranges: tuple[Range, ...]) -> list[int]:
    return [position for first, end in ranges for position in range(first, end)]


@given(st.integers(0, 2**32), st.lists(st.integers(1, 40), min_size=1, max_size=40))
def test_whatever_is_given_back_every_position_is_trained_on_once(seed: int, counts: list[int]):
    draw = random.Random(seed)
    left, trained = Positions(), list[int]()
    for count in counts:
        ranges, left = left.take(count)
        assert len(each(ranges)) == count
        kept, lost = split(ranges, (middle := draw.randint(0, count), count - middle))
        if draw.random() < 0.5:
            kept, lost = lost, kept
        trained += each(kept)
        left = left.give_back(lost)
    still = each(left.returned)
    assert sorted(trained + still) == list(range(left.cursor))


def test_what_came_back_goes_out_before_anything_new():
    ranges, left = Positions().take(10)
    assert ranges == ((0, 10),)
    ranges, left = left.give_back([(2, 4), (6, 7)]).take(5)
    assert ranges == ((2, 4), (6, 7), (10, 12))
    assert left == Positions(12)


def test_what_touches_is_one_range():
    assert Positions(9).give_back([(4, 6), (2, 4)]).returned == ((2, 6),)


@pytest.mark.parametrize("ranges", [[(0, 11)], [(3, 3)], [(-1, 2)], [(0, 3), (2, 5)]])
def test_what_was_not_taken_cannot_come_back(ranges: list[Range]):
    with pytest.raises(Bug):
        Positions(10).give_back(ranges)


def test_an_index_counts_over_all_ranges():
    ranges = ((5, 7), (10, 13))
    assert [at(ranges, index) for index in range(5)] == each(ranges)
    with pytest.raises(Bug):
        at(ranges, 5)


@pytest.mark.parametrize("ranges", [(), ((0, 320),), ((0, 3), (5, 9))])
def test_ranges_are_read_as_they_were_written(ranges: tuple[Range, ...]):
    assert read(written(ranges)) == ranges


def test_what_is_no_range_is_a_bug():
    with pytest.raises(Bug):
        read("1-2,3")
