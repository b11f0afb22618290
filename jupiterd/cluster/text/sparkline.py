"""A row of numbers as one short line of bars.

Pure. Owns the bars and the scale. Doesn't know what the numbers are, or whether the terminal can
show them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

BARS: Final = "▁▂▃▄▅▆▇█"
NOTHING: Final = " "
"""What isn't known leaves a gap."""

Values = Sequence[float | None]


def sparkline(values: Values, width: int, top: float | None = None) -> str:
    """Return the values as at most `width` bars, each the greatest of those that it stands for.

    top: where the highest bar is, above a lowest one of 0; None: from the least to the greatest
    """
    pooled = _pooled(values, width)
    known = [value for value in pooled if value is not None]
    if not known:
        return ""
    low, high = (0.0, top) if top is not None else (min(known), max(known))
    return "".join(NOTHING if value is None else _bar(value, low, high) for value in pooled)


def _pooled(values: Values, width: int) -> list[float | None]:
    count = min(width, len(values))
    edges = [len(values) * each // count for each in range(count + 1)] if count else []
    return [
        max((v for v in values[begin:end] if v is not None), default=None)
        for begin, end in pairwise(edges)
    ]


def _bar(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.0
    return BARS[min(len(BARS) - 1, max(0, int(share * len(BARS))))]
