"""Each kind of packing, and what becomes of what it loses."""

import numpy as np
import pytest
import torch

from jupiterd.workers.islands.compression import PACKERS, Compressor, Kind, halves
from jupiterd.workers.islands.int8_blocks import BLOCK
from tests.support.workers.unpacked import restored

SIZE = 2 * BLOCK


@pytest.mark.parametrize(("kind", "left"), [("int8", 0.03), ("bf16", 0.02), ("fp32", 1e-9)])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_for_good_over_many_rounds(seed: int, kind: Kind, left: float):
    draw = np.random.default_rng(seed)
    packer = Compressor(SIZE, kind)
    wanted, sent = np.zeros(SIZE), np.zeros(SIZE)
    for _ in range(50):
        numbers = draw.normal(size=SIZE).astype(np.float32)
        wanted += numbers
        sent += restored(packer.packed(numbers), SIZE)
        packer.ended(is_counted=True)
    assert np.abs(wanted - sent).max() < left, "of fifty numbers, the last one's rounding is left"
    assert np.allclose(wanted - sent, packer.residual, atol=1e-4)


def test_what_was_lost_of_a_way_that_does_not_count_is_forgotten_with_it():
    draw = np.random.default_rng(1)
    packer = Compressor(SIZE)
    packer.packed(draw.normal(size=SIZE).astype(np.float32))
    packer.ended(is_counted=True)
    before = packer.residual
    packer.packed(draw.normal(size=SIZE).astype(np.float32))
    assert packer.residual is before, "nothing is known of what becomes of it"
    packer.ended(is_counted=False)
    assert packer.residual is before
    packer.ended(is_counted=True)
    assert not packer.residual.any(), "it was packed elsewhere: what that left isn't known here"


def test_bf16_is_what_torch_makes_of_it():
    numbers = np.random.default_rng(1).normal(size=10_000).astype(np.float32)
    theirs = torch.from_numpy(numbers).to(torch.bfloat16).to(torch.float32).numpy()
    assert np.array_equal(restored(halves(numbers), 10_000), theirs)


@pytest.mark.parametrize(("kind", "times"), [("int8", 3.9), ("bf16", 2.0), ("fp32", 1.0)])
def test_so_much_less_goes_over_the_wire(kind: Kind, times: float):
    numbers = np.ones(100 * BLOCK, np.float32)
    assert PACKERS[kind](numbers).size_bytes <= numbers.nbytes / times
