"""How far the clocks of machines are apart, and whose is wrong.

Pure: times are handed in. Owns what an answer to a heartbeat proves of another machine's time of
day, and putting together what is known of all. Doesn't know what a clock is good for: nothing is
decided by the time of day.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from statistics import median_low
from typing import Final

from jupiterd.formats import duration
from jupiterd.ids import NodeId

MOST_S: Final = 2.0
"""Clocks that differ by no more are about right."""

DAY_S: Final = 86_400.0
RETAINED_ANSWERS: Final = 4
"""Of so many answers the quickest counts: its time on the way is the doubt."""


class ClockOffset:
    """How far another machine's time of day is ahead of ours."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, float]] = deque(maxlen=RETAINED_ANSWERS)
        """(doubt, offset) of the latest answers, in seconds."""

    def note(self, sent_s: float, remote_s: float, round_trip_s: float) -> None:
        """Take in an answer.

        Args:
            sent_s: our time of day when the question was sent, in seconds.
            remote_s: the peer's time of day when it answered, in seconds; 0: it states none.
            round_trip_s: seconds between our question and its answer.
        """
        if remote_s and math.isfinite(remote_s) and round_trip_s >= 0.0:
            doubt_s = round_trip_s / 2
            self._readings.append((doubt_s, remote_s - sent_s - doubt_s))

    def clear(self) -> None:
        """Forget it all: nobody knows what becomes of a clock meanwhile."""
        self._readings.clear()

    @property
    def proved_s(self) -> float | None:
        """Return how far it is ahead at the least, behind where negative; None: nobody knows."""
        if not self._readings:
            return None
        doubt_s, offset_s = min(self._readings)
        return math.copysign(max(0.0, abs(offset_s) - doubt_s), offset_s)


def clock_differences(
    own: NodeId, offsets_s: Mapping[NodeId, float], names: Mapping[NodeId, str]
) -> Iterator[tuple[str, str]]:
    """Yield whose clock is wrong, and how that is said; of two machines nobody knows which.

    Args:
        own: this machine.
        offsets_s: another machine -> how far its clock is ahead of ours, in seconds.
        names: as people know all of them.
    """
    clocks = {own: 0.0, **offsets_s}
    if len(clocks) == 2:
        if (apart_s := abs(sum(clocks.values()))) > MOST_S:
            one, other = sorted(names[node] for node in clocks)
            pair = " ".join(sorted(clocks))
            yield pair, f"the clocks of {one} and {other} differ by {_shown(apart_s)}"
        return
    usual_s = median_low(clocks.values())
    for node, offset_s in sorted(clocks.items()):
        if abs(apart_s := offset_s - usual_s) > MOST_S:
            where = "ahead of" if apart_s > 0 else "behind"
            title = f"{names[node]}'s clock is {_shown(abs(apart_s))} {where} those of the others"
            yield node, title


def _shown(seconds: float) -> str:
    """Return how long, without the figures that each look would change."""
    days = seconds / DAY_S
    if days >= 2:
        return f"{days:,.0f} days"
    return duration(seconds) if seconds >= 10 else f"{seconds:.0f} s"
