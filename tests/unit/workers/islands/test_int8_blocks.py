"""Numbers in int8."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jupiterd.workers.islands import flat
from jupiterd.workers.islands.flat import CHUNK
from jupiterd.workers.islands.int8_blocks import BLOCK, LEVELS, rounded
from tests.support.workers.unpacked import restored

NUMBERS = arrays(
    np.float32,
    st.integers(1, 3 * BLOCK),
    elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
)


@given(NUMBERS)
def test_no_number_is_off_by_more_than_half_a_level_of_its_block(numbers):
    found = restored(rounded(numbers), len(numbers))
    for start in range(0, len(numbers), BLOCK):
        block = slice(start, start + BLOCK)
        largest = float(np.abs(numbers[block]).max())
        allowed = largest / float(LEVELS) * 0.5 * (1 + 1e-4) + 1e-37
        assert np.abs(found[block] - numbers[block]).max() <= allowed


@given(NUMBERS)
def test_what_is_restored_is_rounded_to_itself(numbers):
    once = rounded(numbers)
    assert np.array_equal(rounded(restored(once, len(numbers))).levels, once.levels)


@pytest.mark.parametrize("size", [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + BLOCK + 3])
def test_chunks_change_nothing(size: int, monkeypatch: pytest.MonkeyPatch):
    numbers = np.random.default_rng(size).normal(size=size).astype(np.float32)
    found = rounded(numbers)
    by_chunks = restored(found, size)
    monkeypatch.setattr(flat, "CHUNK", 4 * CHUNK)
    at_once = rounded(numbers)
    assert np.array_equal(found.levels, at_once.levels)
    assert np.array_equal(found.scales, at_once.scales)
    assert np.array_equal(by_chunks, restored(at_once, size))


def test_zeros_stay_zeros():
    assert not restored(rounded(np.zeros(BLOCK + 1, np.float32)), BLOCK + 1).any()


def test_a_quarter_of_the_bytes_go_over_the_wire():
    numbers = np.ones(100 * BLOCK, np.float32)
    assert rounded(numbers).size_bytes < numbers.nbytes / 3.9
