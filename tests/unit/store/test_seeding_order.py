"""A seed sends each chunk once before any twice."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.store.bitmap import full, of
from jupiterd.store.seeding_order import MAX_CHUNKS, MAX_TIMES, SeedingOrder

CHUNKS = 40
SIZE_BYTES = 10


def size_of(_chunk: int) -> int:
    return SIZE_BYTES


@given(st.lists(st.tuples(st.sets(st.integers(0, CHUNKS - 1)), st.integers(0, 200)), max_size=30))
def test_what_went_out_least_often_of_the_wanted_goes_out(asks: list[tuple[set[int], int]]) -> None:
    hand_out, sent = SeedingOrder(), Counter[int]()
    for wanted, max_bytes in asks:
        chosen = hand_out.draw(of(wanted), size_of, max_bytes)
        assert set(chosen) <= wanted
        assert chosen == sorted(set(chosen))
        assert len(chosen) == min(len(wanted), max(1, max_bytes // SIZE_BYTES))
        left = wanted - set(chosen)
        if chosen and left:
            assert max(sent[chunk] for chunk in chosen) <= min(sent[chunk] for chunk in left)
        sent.update(chosen)


@given(st.integers(1, 7), st.integers(1, 90))
def test_askers_who_lack_everything_get_each_chunk_once_before_any_twice(
    askers: int, max_bytes: int
) -> None:
    hand_out, sent = SeedingOrder(), Counter[int]()
    while len(sent) < CHUNKS:
        for _ in range(askers):
            if len(sent) < CHUNKS:
                sent.update(hand_out.draw(full(CHUNKS), size_of, max_bytes))
                assert max(sent.values()) == 1 or len(sent) == CHUNKS


def test_who_comes_for_the_thousandth_time_gets_everything_too() -> None:
    hand_out = SeedingOrder()
    for _ in range(2 * MAX_TIMES):
        assert hand_out.draw(full(CHUNKS), size_of, 10_000) == list(range(CHUNKS))


def test_a_chunk_larger_than_the_wish_goes_out_alone_and_many_small_ones_in_part() -> None:
    assert SeedingOrder().draw(full(3), lambda _: 1 << 20, 1) == [0]
    assert len(SeedingOrder().draw(full(3 * MAX_CHUNKS), lambda _: 0, 1)) == MAX_CHUNKS
    assert SeedingOrder().draw(0, size_of, 10_000) == []
