"""When an outer round closes, and whose way counts in it.

Owns these decisions, which one leader takes and writes down. Doesn't know the clock (the time is
handed in), how ways travel, or what is in them.

A round closes as soon as every island is in; otherwise a grace after the first one: a share of the
time that the first one took. Nobody waits longer for a slow or a lost one, and no island's steps
are thrown away for another's sake. What isn't a number, or is much longer than the others' ways, is
left out, and its island begins anew from the weights of all.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from statistics import median

GRACE = 0.2
"""Of the round's time, as the first island in took it."""

LEAST_GRACE_S = 2.0
"""A gang that loses a rank is back by then, mostly."""

MAX_TIMES_MEDIAN = 10.0
"""A way so many times as long as the median of all is taken for a fault."""


@dataclass(frozen=True)
class Way:
    """What an island says of its part of a round."""

    island: str
    tokens: int
    norm: float
    """Its length; infinite or none where a weight isn't a number."""


@dataclass(frozen=True)
class Closing:
    """How a round ended."""

    counted: tuple[str, ...]
    """Islands whose ways are merged, in their fixed order."""
    tokens: tuple[int, ...]
    """Of those, in the same order."""
    quarantined: tuple[str, ...] = ()
    """Their ways are left out, and they begin anew."""
    missing: tuple[str, ...] = ()
    """Whoever wasn't in."""


class OuterRound:
    """One round while it is open."""

    def __init__(self, islands: Collection[str], began_s: float) -> None:
        self._islands = set(islands)
        self._began_s = began_s
        self._ways: dict[str, Way] = {}
        self._first_s: float | None = None

    def arrived(self, way: Way, now_s: float) -> None:
        """Take in an island's way; only its first one counts, and a stranger's doesn't."""
        if way.island in self._islands:
            self._ways.setdefault(way.island, way)
            self._first_s = now_s if self._first_s is None else self._first_s

    def lost(self, island: str) -> None:
        """Take in that an island has gone: nobody waits for it; a way that came counts."""
        if island not in self._ways:
            self._islands.discard(island)

    @property
    def due_s(self) -> float | None:
        """Return when it closes at the latest; None as long as nobody is in."""
        if self._first_s is None:
            return None
        return self._first_s + max(LEAST_GRACE_S, GRACE * (self._first_s - self._began_s))

    def closing(self, now_s: float) -> Closing | None:
        """Return how it ends, once it does."""
        if not self._ways or (self._islands > self._ways.keys() and now_s < (self.due_s or 0.0)):
            return None
        good = {way.island for way in self._ways.values() if self._is_sound(way)}
        counted = tuple(sorted(good))
        return Closing(
            counted,
            tuple(self._ways[island].tokens for island in counted),
            tuple(sorted(self._ways.keys() - good)),
            tuple(sorted(self._islands - self._ways.keys())),
        )

    def _is_sound(self, way: Way) -> bool:
        if not math.isfinite(way.norm) or way.tokens <= 0:
            return False
        usual = median(each.norm for each in self._ways.values() if math.isfinite(each.norm))
        return len(self._ways) < 3 or way.norm <= MAX_TIMES_MEDIAN * usual
