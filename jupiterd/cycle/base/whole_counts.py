"""Counts that members told, as whole numbers: what is no number counts as nothing.

Owns that alone. A ledger keeps what a member wrote, and a screen must not break by it.
"""

import math
from collections.abc import Mapping


def whole_count(counts: Mapping[str, float], name: str) -> int:
    """Return a count; 0 where there is none, or one that is no number."""
    value = counts.get(name, 0)
    return int(value) if math.isfinite(value) else 0
