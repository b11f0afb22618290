"""The outer step: what all islands do with the pseudo-gradients of all.

Owns the arithmetic of merging and stepping. Doesn't know islands, wires or models.

Nesterov's momentum on the mean of the islands' pseudo-gradients, as DiLoCo has it (2311.08105);
plain averaging is the same with a momentum of 0 and a rate of 1. Products and sums are operations
of their own: fused ones round differently, and not every machine has them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from blake3 import blake3

from jupiterd.workers.islands.compression import Packed
from jupiterd.workers.islands.flat import Vector, chunks_of

Inside = Callable[[slice], Iterable[tuple[slice, slice]]]
"""Returns of a part of all weights where its numbers lie in ours, and where in the part."""


@dataclass(frozen=True)
class OuterSettings:
    """How the step is taken: on every island as `cycle.islands.outer_orders` has decided."""

    rate: float
    momentum: float


@dataclass(frozen=True)
class OuterState:
    """What the outer loop carries from round to round, the same on every island."""

    weights: Vector
    """What all islands have in common, as far as this rank holds it."""
    momentum: Vector

    @classmethod
    def at(cls, weights: Vector) -> Self:
        """Begin with these weights."""
        return cls(weights, np.zeros_like(weights))

    def digest(self) -> bytes:
        """Return BLAKE3 of what must be the same on all islands: weights and momentum."""
        hasher = blake3(self.weights.data.cast("B"))
        hasher.update(self.momentum.data.cast("B"))
        return hasher.digest()

    def after(
        self,
        pseudo_gradients: Iterable[Packed],
        tokens: Sequence[int],
        settings: OuterSettings,
        inside: Inside | None = None,
    ) -> "OuterState":
        """Return the state after the islands' pseudo-gradients, in this order, weighted by tokens.

        They are asked for one at a time. Where there are none, nothing follows.

        inside: where numbers of theirs lie in ours, where we hold some of them alone
        """
        if not tokens:
            return self
        mean, total = np.zeros_like(self.weights), sum(tokens)
        for pseudo_gradient, trained in zip(pseudo_gradients, tokens, strict=True):
            for part, numbers in pseudo_gradient.chunks():
                for own, there in inside(part) if inside else ((part, slice(None)),):
                    mean[own] += _times(numbers[there], trained / total)
        return self._stepped(mean, settings)

    def _stepped(self, mean: Vector, settings: OuterSettings) -> "OuterState":
        """Return what follows the mean pseudo-gradient; new weights are written in its place."""
        momentum, weights = np.empty_like(mean), mean
        for part in chunks_of(len(mean)):
            momentum[part] = _times(self.momentum[part], settings.momentum) + mean[part]
            ahead = _times(momentum[part], settings.momentum) + mean[part]
            weights[part] = self.weights[part] - _times(ahead, settings.rate)
        return OuterState(weights, momentum)


def _times(vector: Vector, factor: float) -> Vector:
    return np.multiply(vector, np.float32(factor), dtype=np.float32)
