import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.errors import CorruptArtifactError
from jupiterd.store import bitmap

numbers = st.sets(st.integers(0, 300))


@given(numbers)
def test_a_set_of_numbers_is_the_same_as_bits_and_on_the_wire(chosen: set[int]) -> None:
    bits = bitmap.of(chosen)
    assert list(bitmap.each(bits)) == sorted(chosen)
    assert bitmap.unpacked(bitmap.packed(bits), 301) == bits


@given(numbers)
def test_runs_hold_each_number_once(chosen: set[int]) -> None:
    runs = bitmap.runs(sorted(chosen))
    assert [n for first, after in runs for n in range(first, after)] == sorted(chosen)
    assert all(after < first for (_, after), (first, _) in itertools.pairwise(runs))


def test_a_number_beyond_the_end_is_refused() -> None:
    assert bitmap.unpacked(b"\x07", 3) == bitmap.full(3)
    for data in (b"\x08", b"\x01\x00", b"\x00" * 1000):
        with pytest.raises(CorruptArtifactError, match="beyond the end"):
            bitmap.unpacked(data, 3)
