"""How much of what all-reduce gains over one machine islands keep: it depends on their outer steps.

Owns that curve. Pure. Doesn't know machines, wires or layouts.

Measured with our own outer step (docs/benchmarks.md, the share of the gain that was kept):

    20 outer steps    53 %   four islands, two seeds
    50                10 %   two islands of 1.1 million parameters, one training
    66                87 %   four islands, three settings
    133               93 %   four islands, the mean of three seeds

The curve steps / (steps + HALF_AT) comes nearest to them (least squares) at about 30. One training
differs from the next by far more than the curve is off, so a choice needs a margin beside it.
"""

from typing import Final

HALF_AT: Final = 30
"""After so many outer steps islands keep half of the gain."""


def retained_gain(outer_steps: float) -> float:
    """Return the share, 0 to 1, of the gain over the fastest island that islands keep in the end.

    outer_steps: exchanges of the whole training, 0 or more
    """
    return outer_steps / (outer_steps + HALF_AT)
