"""What a training was predicted to do, beside what it does or did, as people read it.

Owns the words. Doesn't know how either is found: the daemon tells. What has ended is measured of
whole attempts, or rounds of islands, and these are what the next predictions are made of.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.planning.prediction_error import TOLERANCE

Row = Mapping[str, Any]

LEARNS = "which the next prediction takes into account"


def prediction_lines(training: Row) -> list[str]:
    """Return how fast a training was predicted to be, and is; what nobody knows is left out."""
    predicted = training.get("predicted_tokens_per_s")
    measured = training.get("measured_tokens_per_s")
    runs = any(_trains(row) for row in training.get("phases") or ())
    if not predicted:
        return [f"measured {measured:,.0f} tokens/s"] if measured and not runs else []
    told = f"predicted {predicted:,.0f} tokens/s"
    if not measured:
        return [told]
    apart = predicted / measured - 1
    learns = f", {LEARNS}" if abs(apart) > TOLERANCE and not runs else ""
    return [f"{told}, measured {measured:,.0f}{_apart(apart)}{learns}"]


def _trains(row: Row) -> bool:
    return (row.get("phase"), row.get("state")) == ("train", "running")


def _apart(share: float) -> str:
    percent = round(100 * share)
    return f": {abs(percent)} % too {'high' if percent > 0 else 'low'}" if percent else ""
