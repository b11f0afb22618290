"""The daemon's clocks.

Owns which clock is read for what. Pure cores never call it: they are handed the time.
"""

import datetime as dt
import sys
import time


def now_s() -> float:
    """Return seconds on a clock that never goes back and counts sleep; for all decisions."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def wall_iso() -> str:
    """Return the wall time, UTC, to the second, ISO 8601; for display and provenance only."""
    return dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")  # noqa: TID251


def wall_iso_before(seconds: float) -> str:
    """Return the wall time so long ago, in the same form."""
    then = dt.datetime.now(tz=dt.UTC) - dt.timedelta(seconds=seconds)  # noqa: TID251
    return then.isoformat(timespec="seconds")


def wall_s() -> float:
    """Return the wall time in seconds since 1970; for the ages of files, never for decisions."""
    return time.time()  # noqa: TID251
