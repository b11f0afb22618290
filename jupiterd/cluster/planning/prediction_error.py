"""By how much predictions of a kind were wrong, so that the next ones are less so.

Owns that factor. Pure. Doesn't know what was predicted, or where the pairs are kept. Pairs hold
what was predicted without a factor: else each one would undo the one before.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

TOLERANCE: Final = 0.2
"""Of what was measured: a prediction nearer than that is left as it is."""

NEWEST: Final = 5
"""So many pairs count: links and machines change."""

LEAST, MOST = 0.1, 10.0
"""Bounds of the factor: one odd run decides nothing for good."""


def correction(pairs: Sequence[tuple[float, float]]) -> float:
    """Return what the next prediction is multiplied by; 1 where they were near enough.

    pairs: (predicted, measured), the newest last; what isn't above zero says nothing
    """
    known = [(guess, found) for guess, found in pairs if _is_rate(guess) and _is_rate(found)]
    if not known:
        return 1.0
    ratio = median(found / guess for guess, found in known[-NEWEST:])
    is_near = abs(1 / ratio - 1) <= TOLERANCE
    return 1.0 if is_near else min(max(LEAST, ratio), MOST)


def _is_rate(value: float) -> bool:
    return 0.0 < value < math.inf
