"""The keyed permutation: every sequence once a pass, in an order that depends on the key alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.permutation import permuted, sequences_at
from jupiterd.errors import Bug


@given(n=st.integers(1, 600), key=st.binary(max_size=40))
def test_every_index_is_hit_exactly_once(n: int, key: bytes):
    assert sorted(permuted(index, n, key) for index in range(n)) == list(range(n))


@given(n=st.integers(1, 1 << 62), key=st.binary(max_size=8), data=st.data())
def test_a_huge_range_needs_no_memory_and_stays_in_range(n: int, key: bytes, data: st.DataObject):
    assert 0 <= permuted(data.draw(st.integers(0, n - 1)), n, key) < n


def test_the_order_never_changes():
    assert [permuted(index, 10, b"key") for index in range(10)] == [8, 4, 7, 2, 5, 0, 3, 9, 1, 6]


def test_keys_give_unlike_orders():
    orders = {tuple(permuted(i, 100, bytes([key])) for i in range(100)) for key in range(20)}
    assert len(orders) == 20


@pytest.mark.parametrize("index", [-1, 5])
def test_an_index_outside_the_range_is_our_bug(index: int):
    with pytest.raises(Bug, match="outside"):
        permuted(index, 5, b"")


@given(n=st.integers(1, 50), passes=st.integers(1, 3))
def test_each_pass_holds_every_sequence_once(n: int, passes: int):
    order = list(sequences_at(0, n * passes, n, "seed"))
    for number in range(passes):
        assert sorted(order[number * n : (number + 1) * n]) == list(range(n))


def test_the_second_pass_has_an_order_of_its_own():
    assert list(sequences_at(0, 50, 50, "seed")) != list(sequences_at(50, 50, 50, "seed"))


@given(start=st.integers(0, 90), count=st.integers(0, 40), cut=st.integers(0, 40))
def test_any_cut_of_a_range_gives_the_same_sequences(start: int, count: int, cut: int):
    cut = min(cut, count)
    whole = list(sequences_at(start, count, 37, "s"))
    parts = [*sequences_at(start, cut, 37, "s"), *sequences_at(start + cut, count - cut, 37, "s")]
    assert whole == parts
