"""The order by tables is the order: `permutation` says what it must be."""

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.permutation import sequences_at
from jupiterd.workers.train import sequence_order
from jupiterd.workers.train.sequence_order import SequenceOrder


@given(
    n=st.integers(1, 300),
    start=st.integers(0, 900),
    count=st.integers(0, 400),
    seed=st.text(max_size=9),
)
def test_it_is_the_permutations_order(n: int, start: int, count: int, seed: str):
    found = SequenceOrder(n, seed).at(start, count)
    assert found.tolist() == list(sequences_at(start, count, n, seed))


def test_it_goes_on_over_stretches_and_passes():
    n = sequence_order.STRETCH + 5
    whole = SequenceOrder(n, "7/round 1")
    start = n - 20
    assert whole.at(start, 40).tolist() == list(sequences_at(start, 40, n, "7/round 1"))
    first = sequence_order.STRETCH - 3
    assert whole.at(first, 6).tolist() == list(sequences_at(first, 6, n, "7/round 1"))


def test_more_sequences_than_tables_are_made_for_have_the_same_order():
    n = (1 << 2 * sequence_order.MOST_HALF_BITS) + 1
    assert SequenceOrder(n, "s").at(n - 2, 4).tolist() == list(sequences_at(n - 2, 4, n, "s"))
