"""Who trains just now, and how much of the work each does: the rows of a training's gang.

Owns their `share`. Pure: it is handed the leader's telemetry. All ranks of a gang take the same
steps, so a rank's part of its gang's tokens per second is its part of each batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def gang_rows(seats: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the ranks with their share of their gang's batch, from 0 to 1; None: nobody knows."""
    return [{**seat, "share": _share(seat, seats)} for seat in seats]


def _share(seat: Row, seats: Sequence[Row]) -> float | None:
    """Return a rank's part; of islands, each is a gang of its own."""
    gang = [each for each in seats if each.get("island") == seat.get("island")]
    rates: list[float | None] = [each.get("tokens_per_s") for each in gang]
    known = [rate for rate in rates if rate is not None]
    own: float | None = seat.get("tokens_per_s")
    if own is None or len(known) < len(rates) or sum(known) <= 0:
        return None
    return round(own / sum(known), 4)
