"""How much held-out text is scored while a model trains, and how often.

Owns what that may cost. Doesn't know how a loss is computed, or what is decided by it.

A forward pass alone takes about a third of a step's time for as many tokens.
"""

import math

LEAST_SEQUENCES, MOST_SEQUENCES = 16, 64
SEQUENCES_SHARE = 100
"""Between those, the data has so many times as many sequences: long trainings can afford more."""
LEAST_PASSES_SHARE = 4
"""The data has at least so many times as many sequences."""

FORWARD_SHARE = 1 / 3
MOST_COST = 0.02
"""Of the time of the steps, for a curve."""
PLACES_COST = 0.04
"""Of the time of the steps between two places where going on is decided."""

MEASUREMENTS = 20
"""Of one training, where its steps are many: a curve has that many points."""


def sequences_to_score(trained_on: int) -> int:
    """Return how many sequences are enough, for so many sequences of data.

    The batch has no part in it: two runs of one model begin with one figure on one text.
    """
    wanted = min(MOST_SEQUENCES, max(LEAST_SEQUENCES, trained_on // SEQUENCES_SHARE))
    return max(1, min(wanted, trained_on // LEAST_PASSES_SHARE))


def least_interval(batch: int, scored: int, most_cost: float = MOST_COST) -> int:
    """Return the steps between two measurements that keep them cheap."""
    return math.ceil(scored * FORWARD_SHARE / (most_cost * batch))


def measure_interval(steps: int, batch: int, scored: int) -> int:
    """Return the steps between two measurements of a training of so many steps."""
    return max(1, min(steps, max(least_interval(batch, scored), round(steps / MEASUREMENTS))))
