"""The order of training, many positions at a time: `permutation.sequences_at` by tables.

Owns the tables of a pass and the stretch of the order that was asked for last. Doesn't know shards.
A Feistel round knows half of an index only, so its function has few values: they are computed once
a pass, and then a position costs a tenth of a microsecond instead of twenty.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.base.permutation import ROUNDS, half_bits_of, mixed, pass_key, sequences_at

STRETCH = 1 << 12
"""Positions that are looked up together; asked for one by one they would cost as much as before."""

MOST_HALF_BITS = 16
"""Tables of four times 65,536 numbers, for up to 2**32 sequences. There are never so many."""


class SequenceOrder:
    """Which sequence (of n) stands at each position; see `sequences_at`."""

    def __init__(self, n: int, seed: str) -> None:
        self._n = n
        self._seed = seed
        self._half_bits = half_bits_of(n)
        self._stretch = lru_cache(maxsize=2)(self._looked_up)
        self._tables = lru_cache(maxsize=1)(self._computed_tables)

    def at(self, start: int, count: int) -> NDArray[np.int64]:
        """Return the sequences at positions [start, start + count)."""
        if self._half_bits > MOST_HALF_BITS:
            return np.fromiter(sequences_at(start, count, self._n, self._seed), np.int64)
        found = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            number_of_pass, index = divmod(start + done, self._n)
            stretch, first = divmod(index, STRETCH)
            part = self._stretch(number_of_pass, stretch)[first : first + count - done]
            found[done : done + len(part)] = part
            done += len(part)
        return found

    def _looked_up(self, number_of_pass: int, stretch: int) -> NDArray[np.int64]:
        """Return a stretch of one pass; what falls outside [0, n) is shuffled again."""
        first = stretch * STRETCH
        found = np.arange(first, min(first + STRETCH, self._n), dtype=np.int64)
        outside = slice(None)
        while len(left := found[outside]):
            found[outside] = self._shuffled(left, self._tables(number_of_pass))
            outside = np.flatnonzero(found >= self._n)
        return found

    def _shuffled(self, values: NDArray[np.int64], tables: NDArray[np.int64]) -> NDArray[np.int64]:
        left, right = values >> self._half_bits, values & ((1 << self._half_bits) - 1)
        for table in tables:
            left, right = right, left ^ table[right]
        return left << self._half_bits | right

    def _computed_tables(self, number_of_pass: int) -> NDArray[np.int64]:
        """Return what each round adds to the other half, [rounds, halves]."""
        key, halves = pass_key(self._seed, number_of_pass), 1 << self._half_bits
        values = [
            [mixed(half, n, key) & (halves - 1) for half in range(halves)] for n in range(ROUNDS)
        ]
        return np.array(values, dtype=np.int64)
