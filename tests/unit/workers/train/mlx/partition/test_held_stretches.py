"""What a rank holds of a model's tensors, and how all ranks' parts make them up again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.training.partition.partition import Partition

mx = pytest.importorskip("mlx.core")
pytestmark = pytest.mark.mlx

SHAPES = st.dictionaries(
    st.sampled_from([
        "model.embed.weight", "model.layers.0.a.weight", "model.layers.0.norm.weight",
        "model.layers.1.a.weight", "model.layers.1.norm.weight", "model.norm.weight",
    ]),
    st.one_of(st.tuples(st.integers(1, 90)), st.tuples(st.integers(1, 9), st.integers(1, 40))),
    min_size=1,
)  # fmt: skip
PARTS = st.lists(st.integers(0, 30), min_size=1, max_size=4).filter(any)


@given(SHAPES, PARTS)
def test_the_pieces_of_all_ranks_make_up_each_tensor(
    shapes: dict[str, tuple[int, ...]], parts: list[int]
):
    from jupiterd.workers.train.mlx.partition.held_stretches import HeldStretches

    rng = np.random.default_rng(3)
    tensors = {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}
    ranks = [HeldStretches(shapes, Partition(3, tuple(parts)), r) for r in range(len(parts))]
    for unit in ranks[0].units:
        stretches = list[np.ndarray]()
        for held in ranks:
            mine = {n: mx.array(held.piece(n, tensors[n])) for n in unit.sizes if held.holds(n)}
            assert all(piece.ndim == tensors[name].ndim for name, piece in mine.items())
            stretch = held.stretch(unit, mine)
            again = held.pieces(unit, stretch)
            assert all(mx.array_equal(again[name], piece) for name, piece in mine.items())
            stretches.append(np.array(stretch))
        whole = ranks[0].tensors(unit, mx.array(np.concatenate(stretches)))
        for name in unit.sizes:
            np.testing.assert_array_equal(np.array(whole[name]), tensors[name])


def test_a_long_vectors_squares_are_added_up_exactly():
    from jupiterd.workers.train.mlx.partition.held_stretches import square_sum

    values = np.random.default_rng(4).standard_normal(600_001).astype(np.float32)
    pieces = {"a": mx.array(values[:500_000].reshape(1, -1)), "b": mx.array(values[500_000:])}
    expected = float((values.astype(np.float64) ** 2).sum())
    assert square_sum(pieces) == pytest.approx(expected, rel=1e-7)
