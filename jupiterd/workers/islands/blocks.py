"""Numbers in int8, in blocks that have a scale each.

Owns the rounding. Doesn't know what the numbers are.

A block's scale is its largest magnitude over 127; numbers are rounded to nearest, ties to even
(block-wise absmax: Dettmers et al., 2110.02861). Division, rounding and products are single IEEE
operations, the same on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.islands.flat import Vector

BLOCK = 512
LEVELS = np.float32(127)


@dataclass(frozen=True)
class Blocks:
    """A vector in int8."""

    levels: NDArray[np.int8]
    """[numbers], from -127 to 127."""
    scales: Vector
    """[blocks]; the last block may be shorter than the others."""

    @property
    def size_bytes(self) -> int:
        """Return how much of it goes over the wire."""
        return self.levels.nbytes + self.scales.nbytes

    def restored(self) -> Vector:
        """Return the numbers, as all islands see them."""
        return self.levels.astype(np.float32) * _spread(self.scales, len(self.levels))


def rounded(numbers: Vector) -> Blocks:
    """Return the numbers in int8; they must be finite."""
    starts = np.arange(0, len(numbers), BLOCK)
    largest = np.maximum.reduceat(np.abs(numbers), starts) if len(numbers) else numbers
    scales = (largest / LEVELS).astype(np.float32)
    divisors = np.where(scales > 0, scales, np.float32(1))
    levels = np.rint(numbers / _spread(divisors, len(numbers)))
    return Blocks(np.clip(levels, -LEVELS, LEVELS).astype(np.int8), scales)


def blocks_of(size: int) -> int:
    """Return how many blocks a vector of that length has."""
    return -(-size // BLOCK)


def _spread(of_blocks: Vector, size: int) -> Vector:
    return np.repeat(of_blocks, BLOCK)[:size]
