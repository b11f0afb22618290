"""Numbers in int8, in blocks that have a scale each.

Owns the rounding. Doesn't know what the numbers are.

A block's scale is its largest magnitude over 127; numbers are rounded to nearest, ties to even
(block-wise absmax: Dettmers et al., 2110.02861). Division, rounding and products are single IEEE
operations, the same on every machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.islands.flat import Vector, chunks_of

BLOCK = 512
"""Numbers; a chunk has whole ones."""
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

    def chunks(self) -> Iterator[tuple[slice, Vector]]:
        """Yield the numbers, as all islands see them, and where they stand."""
        for part in chunks_of(len(self.levels)):
            levels = self.levels[part].astype(np.float32)
            yield part, levels * _spread(self.scales[_blocks(part)], len(levels))


def rounded(numbers: Vector) -> Blocks:
    """Return the numbers in int8; they must be finite."""
    size = len(numbers)
    found = Blocks(np.empty(size, np.int8), np.empty(blocks_of(size), np.float32))
    for part in chunks_of(size):
        found.levels[part], found.scales[_blocks(part)] = _rounded(numbers[part])
    return found


def blocks_of(size: int) -> int:
    """Return how many blocks a vector of that length has."""
    return -(-size // BLOCK)


def _rounded(numbers: Vector) -> tuple[Vector, Vector]:
    """Return levels and scales."""
    largest = np.maximum.reduceat(np.abs(numbers), np.arange(0, len(numbers), BLOCK))
    scales = np.divide(largest, LEVELS, dtype=np.float32)
    divisors = np.where(scales > 0, scales, np.float32(1))
    levels = np.rint(numbers / _spread(divisors, len(numbers)))
    return np.clip(levels, -LEVELS, LEVELS), scales


def _blocks(part: slice) -> slice:
    """Return the blocks of a chunk."""
    return slice(part.start // BLOCK, blocks_of(part.stop))


def _spread(of_blocks: Vector, size: int) -> Vector:
    return np.repeat(of_blocks, BLOCK)[:size]
