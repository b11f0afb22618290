"""How long the rounds of islands take, as a leader sees it, and what is exchanged in them.

Owns the clock of one leader: how long a round took that was open when another one led, nobody says.
"""

from collections.abc import Mapping
from dataclasses import replace

from jupiterd.cluster.facts import OuterStepTaken
from jupiterd.cluster.registers import fact_hash
from jupiterd.cycle.outer_round import Way
from jupiterd.daemon.clock import now_s


class OuterTimes:
    """The times of one line of outer steps."""

    def __init__(self) -> None:
        self._last, self._at_s = "", 0.0
        """The last step that this leader has taken, and when."""

    def timed(self, step: OuterStepTaken, ways: Mapping[str, Way]) -> OuterStepTaken:
        """Return a step that is taken now, with how long its ways took and how large they are."""
        at_s = now_s()
        knows = bool(step.parent) and step.parent == self._last
        told = replace(
            step,
            elapsed_s=round(at_s - self._at_s, 3) if knows else 0.0,
            trained_s={each: round(ways[each].elapsed_s, 3) for each in step.islands},
            way_bytes={e: ways[e].size_bytes for e in step.islands if ways[e].size_bytes},
        )
        self._last, self._at_s = fact_hash(told), at_s
        return told
