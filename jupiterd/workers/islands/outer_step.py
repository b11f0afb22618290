"""The outer step: what all islands do with the merged way of all.

Owns the arithmetic of merging and stepping. Doesn't know islands, wires or models.

Nesterov's momentum on the mean of the islands' ways, as DiLoCo has it (2311.08105); plain averaging
is the same with a momentum of 0 and a rate of 1. Products and sums are operations of their own:
fused ones round differently, and not every machine has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jupiterd.workers.islands.flat import Vector


@dataclass(frozen=True)
class OuterSettings:
    """How the step is taken; the same on every island."""

    rate: float = 0.7
    momentum: float = 0.9


AVERAGE = OuterSettings(rate=1.0, momentum=0.0)


def merged(ways: Sequence[Vector], tokens: Sequence[int]) -> Vector:
    """Return the mean of the islands' ways in this order, each as weighty as its tokens."""
    total = sum(tokens)
    mean = np.zeros_like(ways[0])
    for way, trained in zip(ways, tokens, strict=True):
        mean += way * np.float32(trained / total)
    return mean


@dataclass
class OuterState:
    """What the outer loop carries from round to round, the same on every island."""

    weights: Vector
    """Where the round began."""
    momentum: Vector
    round: int = 0
    """Outer steps taken."""

    @classmethod
    def at(cls, weights: Vector) -> "OuterState":
        """Begin with these weights."""
        return cls(weights, np.zeros_like(weights))

    def way_to(self, weights: Vector) -> Vector:
        """Return the way from these weights back to the round's start: a gradient, as it were."""
        return self.weights - weights

    def step(self, mean: Vector, settings: OuterSettings) -> None:
        """Take the outer step along the merged way."""
        rate, momentum = np.float32(settings.rate), np.float32(settings.momentum)
        self.momentum = self.momentum * momentum + mean
        ahead = self.momentum * momentum + mean
        self.weights = self.weights - ahead * rate
        self.round += 1
