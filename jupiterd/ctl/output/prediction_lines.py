"""The line about the predicted and the measured speed of a training.

Pure. Owns the text; the daemon's document has both speeds. The measured speed of a training that
has ended is that of whole attempts, or of rounds of islands; the next predictions use it.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.cluster.planning.prediction_error import TOLERANCE

Row = Mapping[str, Any]

LEARNS = "which the next prediction takes into account"


def prediction_lines(training: Row) -> list[str]:
    """Return a line with the predicted and the measured speed; empty if neither is known."""
    predicted = training.get("predicted_tokens_per_s")
    measured = training.get("measured_tokens_per_s")
    runs = any(_trains(row) for row in training.get("phases") or ())
    if not predicted:
        return [f"measured {measured:,.0f} tokens/s"] if measured and not runs else []
    text = f"predicted {predicted:,.0f} tokens/s"
    if not measured:
        return [text]
    apart = predicted / measured - 1
    learns = f", {LEARNS}" if abs(apart) > TOLERANCE and not runs else ""
    return [f"{text}, measured {measured:,.0f}{_apart(apart)}{learns}"]


def _trains(row: Row) -> bool:
    return (row.get("phase"), row.get("state")) == ("train", "running")


def _apart(share: float) -> str:
    percent = round(100 * share)
    return f": {abs(percent)} % too {'high' if percent > 0 else 'low'}" if percent else ""
