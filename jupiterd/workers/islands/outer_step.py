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

FEW_ISLANDS = 2
SHORT_ROUND = 50
"""Steps."""


@dataclass(frozen=True)
class OuterSettings:
    """How the step is taken; the same on every island."""

    rate: float = 0.7
    momentum: float = 0.9

    @classmethod
    def usual(cls, islands: int, every_steps: int) -> "OuterSettings":
        """Return what suits so many islands that exchange after so many steps.

        Few islands, or short rounds, overshoot at the full rate (DiLoCo's scaling laws,
        2503.09799, have the best rate grow with both).
        """
        return cls(rate=0.5 if islands <= FEW_ISLANDS or every_steps < SHORT_ROUND else 0.7)


AVERAGE = OuterSettings(rate=1.0, momentum=0.0)


def mean_way(ways: Sequence[Vector], tokens: Sequence[int]) -> Vector:
    """Return the mean of the islands' ways in this order, each as weighty as its tokens."""
    total = sum(tokens)
    mean = np.zeros_like(ways[0])
    for way, trained in zip(ways, tokens, strict=True):
        mean += _times(way, trained / total)
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
        self.momentum = _times(self.momentum, settings.momentum) + mean
        ahead = _times(self.momentum, settings.momentum) + mean
        self.weights = self.weights - _times(ahead, settings.rate)
        self.round += 1


def _times(vector: Vector, factor: float) -> Vector:
    return np.multiply(vector, np.float32(factor), dtype=np.float32)
