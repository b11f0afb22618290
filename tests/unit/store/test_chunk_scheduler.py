"""Whom to ask for what while an artifact is gathered."""

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.store.bitmap import each, full, of
from jupiterd.store.chunk_scheduler import (
    MAX_BATCH_ALONE_BYTES,
    MAX_BATCH_BYTES,
    MIN_BATCH_BYTES,
    OVERDUE_S,
    ChunkScheduler,
)

CHUNK_BYTES = 1 << 20
A, B = 0, 1


def claims(count: int) -> ChunkScheduler:
    return ChunkScheduler(full(count), CHUNK_BYTES)


def test_a_chunk_is_asked_of_one_source_at_a_time() -> None:
    ours = claims(4)
    assert ours.claim(A, [0, 1], 0.0) == [0, 1]
    assert list(each(ours.wanted(B, 0.0))) == [2, 3]
    assert ours.claim(B, [1, 2], 0.0) == [2]


def test_what_a_source_cannot_bring_is_free_again() -> None:
    ours = claims(4)
    ours.claim(A, [0, 1], 0.0)
    ours.claim(A, [2], 0.0)
    ours.release(A, of([0]))
    assert list(each(ours.wanted(B, 0.0))) == [0, 3]
    ours.release(A)
    assert list(each(ours.wanted(B, 0.0))) == [0, 1, 2, 3]


def test_once_nothing_is_free_what_no_longer_moves_is_asked_of_another() -> None:
    ours = claims(3)
    ours.claim(A, [0, 1, 2], 0.0)
    assert not ours.wanted(B, OVERDUE_S - 0.1)
    assert ours.overdue_at_s(B) == OVERDUE_S
    assert ours.overdue_at_s(A) is None
    ours.arrived(of([0]), 0.5)  # it moves
    assert not ours.wanted(B, OVERDUE_S)
    assert list(each(ours.wanted(B, 0.5 + OVERDUE_S))) == [1, 2]
    assert not ours.wanted(A, 100.0)
    assert ours.claim(B, [2], 0.5 + OVERDUE_S) == [2]
    ours.arrived(of([1, 2]), 2.0)
    assert not ours.missing
    assert ours.overdue_at_s(B) is None


def test_batches_begin_small_grow_and_shrink_towards_the_end() -> None:
    ours = claims(1000)
    sizes: list[int] = []
    for start in range(0, 40, 4):
        sizes.append(ours.batch_bytes(ours.wanted(A, 0.0), 1))
        ours.claim(A, list(range(start, start + 4)), 0.0)
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (2 << 20, MAX_BATCH_ALONE_BYTES)
    assert ours.batch_bytes(full(900), 5) == MAX_BATCH_BYTES
    assert ours.batch_bytes(full(40), 5) == 2 << 20
    assert ours.batch_bytes(full(1), 5) == MIN_BATCH_BYTES


@given(st.data())
def test_whatever_sources_do_every_chunk_is_gathered(data: st.DataObject) -> None:
    """Sources offer, bring, drop and stand still as they like; one of them at last is honest."""
    ours, now_s = claims(30), 0.0
    busy: dict[int, list[int]] = {}
    for _ in range(data.draw(st.integers(0, 60))):
        now_s += data.draw(st.floats(0, 1.5))
        source = data.draw(st.integers(0, 3))
        deed = data.draw(st.sampled_from(["draw", "bring", "drop", "stand still"]))
        if deed == "draw":
            offered = sorted(data.draw(st.sets(st.integers(0, 29), max_size=6)))
            taken = ours.claim(source, offered, now_s)
            assert set(taken) <= set(offered)
            assert of(taken) & ~ours.missing == 0
            busy[source] = taken
        elif deed == "bring":
            ours.arrived(of(busy.pop(source, [])), now_s)
        elif deed == "drop":
            ours.release(source)
            busy.pop(source, None)
    while ours.missing:
        now_s += OVERDUE_S
        taken = ours.claim(9, list(each(ours.wanted(9, now_s))), now_s)
        assert taken
        ours.arrived(of(taken), now_s)
