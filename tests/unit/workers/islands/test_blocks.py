"""Numbers in int8."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jupiterd.workers.islands.blocks import BLOCK, LEVELS, rounded

NUMBERS = arrays(
    np.float32,
    st.integers(1, 3 * BLOCK),
    elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
)


@given(NUMBERS)
def test_no_number_is_off_by_more_than_half_a_level_of_its_block(numbers):
    found = rounded(numbers).restored()
    for start in range(0, len(numbers), BLOCK):
        block = slice(start, start + BLOCK)
        largest = float(np.abs(numbers[block]).max())
        allowed = largest / float(LEVELS) * 0.5 * (1 + 1e-4) + 1e-37
        assert np.abs(found[block] - numbers[block]).max() <= allowed


@given(NUMBERS)
def test_what_is_restored_is_rounded_to_itself(numbers):
    once = rounded(numbers)
    assert np.array_equal(rounded(once.restored()).levels, once.levels)


def test_zeros_stay_zeros():
    assert not rounded(np.zeros(BLOCK + 1, np.float32)).restored().any()


def test_a_quarter_of_the_bytes_go_over_the_wire():
    numbers = np.ones(100 * BLOCK, np.float32)
    assert rounded(numbers).size_bytes < numbers.nbytes / 3.9
