"""The dashboard's clock.

Owns what a moment is and which clocks it is read from. Everything else is handed a moment.
"""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """One point in time, for reckoning and for reading."""

    now_s: float
    """Seconds on a clock that only goes forward."""
    wall: str
    """Local wall time, HH:MM:SS; for display only."""


def moment() -> Moment:
    """Return the present moment."""
    return Moment(time.monotonic(), time.strftime("%H:%M:%S"))
