"""Stretches of a vector that go from rank to rank of a ring: gathered, or added up.

Owns the order of the hops. Doesn't know what the numbers are. MLX's ring has no exchange of uneven
parts; each rank passes on to its right neighbour what it has got of its left one, so every number
travels as seldom as can be.
"""

import time
from collections.abc import Sequence

import mlx.core as mx

from jupiterd.workers.train.mlx.ring import Ring


class StretchExchange:
    """What a rank exchanges with the others; all call the same with the same bounds."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self.waited_s = 0.0
        """Seconds spent so far, mostly in waiting for other ranks."""

    def gather(self, mine: mx.array, bounds: Sequence[int]) -> mx.array:
        """Return the whole vector, on every rank.

        mine: float32, this rank's stretch, computed; bounds: where each begins, and the last's end
        """
        began_s = time.perf_counter()
        rank, ranks = self._ring.rank, self._ring.world_size
        found = {rank: mine}
        for hop in range(ranks - 1):
            there, here = (rank - hop) % ranks, (rank - hop - 1) % ranks
            found[here] = self._ring.pass_on(found[there], bounds[here + 1] - bounds[here])
        whole = mx.concatenate([found[number] for number in range(ranks)]) if ranks > 1 else mine
        mx.eval(whole)
        self.waited_s += time.perf_counter() - began_s
        return whole

    def reduce(self, whole: mx.array, bounds: Sequence[int]) -> mx.array:
        """Return this rank's stretch of the sum of all ranks' vectors.

        Each stretch is added up in the order of the ring, from its owner's right neighbour on.

        whole: float32, computed; bounds: where each stretch begins, and the last's end
        """
        began_s = time.perf_counter()
        rank, ranks = self._ring.rank, self._ring.world_size
        first = (rank - 1) % ranks
        total = whole[bounds[first] : bounds[first + 1]]
        mx.eval(total)
        for hop in range(ranks - 1):
            here = (rank - hop - 2) % ranks
            own = whole[bounds[here] : bounds[here + 1]]
            total = own + self._ring.pass_on(total, own.size)
            mx.eval(total)
        self.waited_s += time.perf_counter() - began_s
        return total
