"""The search for the micro batch with which a rank trains on the most tokens a second.

Pure. Owns what is tried next, when to stop, and what is best of what was tried. Doesn't know
devices or the clock: callers compute the passes and say how long each took.

    begin            what would be taken without a search
    twice as many    as long as that is faster, and fits
    half as many     the same, where more weren't faster
    in between       where twice as many are too many: a few sizes nearer to that limit

Of each size the first pass doesn't count: it allocates memory and chooses kernels. A size that
runs out of memory is one that isn't taken, and so is one that would take longer than there is time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from jupiterd.cycle.micro_batches.even_sizes import doubling_sizes, size_between

LIMIT_S: Final = 20.0
"""Of the whole search."""

FEWEST_PASSES, MOST_PASSES = 3, 12
TIMED_S: Final = 0.3
"""Passes of a size are repeated until they took so long together."""

WORTH_TAKING: Final = 0.03
"""So much faster must another size be than the best one before: less may be noise."""

FARTHER: Final = 1.4
"""The next larger size has so many times as many sequences, or it would hardly be another one."""

NEARER_TRIES: Final = 3
"""Sizes that are tried between one that is good and one that is too large."""

WARMS_UP: Final = 2.0
"""So many times as long as later ones may a first pass hold the device."""

CAUTION: Final = 1.5
"""What a pass may take, by what is expected of it."""


@dataclass
class _Tried:
    """One size."""

    passes_s: list[float] = field(default_factory=list[float])
    """The first one warms up."""
    ran_out: bool = False
    """Memory did."""

    def pass_s(self) -> float:
        """Return how long one takes; of the first alone where there is no other."""
        return median(self.passes_s[1:] or self.passes_s)

    @property
    def is_done(self) -> bool:
        """Say whether that is known well enough."""
        counted = self.passes_s[1:]
        is_enough = len(counted) >= FEWEST_PASSES and sum(counted) >= TIMED_S
        return self.ran_out or is_enough or len(counted) >= MOST_PASSES


class BatchSearch:
    """One search."""

    def __init__(
        self,
        sequences: int,
        begin: int,
        fits: Callable[[int], bool],
        sequence_s: float,
        limit_s: float = LIMIT_S,
        most_pass_s: float = math.inf,
    ) -> None:
        """Begin.

        Args:
            sequences: of a step, as many as the rank may get.
            begin: the size that is taken without a search.
            fits: whether a size may be tried at all.
            sequence_s: about how long a sequence takes; only for the first pass.
            limit_s: what the search may take.
            most_pass_s: a size with longer passes is too large, as if memory had run out.
        """
        self._sequences, self._begin, self._fits = sequences, begin, fits
        self._sequence_s, self._limit_s = sequence_s, limit_s
        self._most_pass_s = most_pass_s
        self._tried: dict[int, _Tried] = {}
        self._running: int | None = None
        self._nearer_left = NEARER_TRIES
        self._too_slow: set[int] = set()
        """Sizes for which there was no time."""

    @property
    def best(self) -> int:
        """Return the best size so far; the one that was begun with until another is faster."""
        measured = [n for n, tried in self._tried.items() if tried.passes_s and not tried.ran_out]
        if not measured:
            return self._smaller_than_ran_out()
        best = measured[0]
        for size in measured[1:]:
            if self.rate(size) > self.rate(best) * (1 + WORTH_TAKING):
                best = size
        return best

    def rate(self, size: int) -> float:
        """Return the sequences per second of a size that was tried."""
        return size / self._tried[size].pass_s()

    def rate_of(self, size: int) -> float | None:
        """Return the same; None where it wasn't measured, or ran out."""
        tried = self._tried.get(size)
        return None if tried is None or tried.ran_out or not tried.passes_s else self.rate(size)

    def next(self, elapsed_s: float) -> int | None:
        """Return the size of the next pass; None: the search is over, and `best` is to be taken."""
        while True:
            if self._running is None:
                self._running = self._wanted()
            size = self._running
            if size is None:
                return None
            if not self._is_done(size) and elapsed_s + self._expected_s(size) <= self._limit_s:
                return size
            if size not in self._tried:
                self._too_slow.add(size)
            self._running = None

    def took(self, size: int, seconds: float) -> None:
        """Take in how long a pass took."""
        tried = self._of(size)
        tried.passes_s.append(max(seconds, 1e-9))
        allowed_s = self._most_pass_s * (WARMS_UP if len(tried.passes_s) == 1 else 1)
        tried.ran_out = tried.ran_out or tried.pass_s() > allowed_s

    def ran_out(self, size: int) -> None:
        """Take in that a pass ran out of memory."""
        self._of(size).ran_out = True

    def _of(self, size: int) -> _Tried:
        return self._tried.setdefault(size, _Tried())

    def _is_done(self, size: int) -> bool:
        return size in self._tried and self._tried[size].is_done

    def _is_open(self, size: int) -> bool:
        return size not in self._tried and size not in self._too_slow and self._fits(size)

    def _wanted(self) -> int | None:
        """Return the next size to try."""
        if self._begin not in self._tried:
            return None if self._begin in self._too_slow else self._begin
        sizes = doubling_sizes(self._sequences)
        best = self.best
        if best not in self._tried:  # all that was tried ran out
            return best if self._is_open(best) else None
        more = next((size for size in sizes if size >= FARTHER * best), sizes[-1])
        if more > best and self._is_open(more):
            return more
        fewer = next((size for size in reversed(sizes) if FARTHER * size <= best), sizes[0])
        if fewer < best and self._is_open(fewer):
            return fewer
        return self._nearer(best, more) if more > best else None

    def _nearer(self, best: int, more: int) -> int | None:
        """Return a size between the best and one that is too many, or isn't better."""
        larger = [size for size in (*self._tried, *self._too_slow) if best < size < more]
        between = size_between(self._sequences, best, min([more, *larger]))
        if between is None or not self._nearer_left or between in self._tried:
            return None
        self._nearer_left -= 1
        if self._is_open(between):
            return between
        self._too_slow.add(between)
        return self._nearer(best, more)

    def _expected_s(self, size: int) -> float:
        """Return what the next pass of a size may take: of a new one, with the pass to be timed."""
        if size in self._tried:
            return CAUTION * self._tried[size].pass_s()
        known = [n for n, tried in self._tried.items() if tried.passes_s]
        if not known:
            return CAUTION * self._sequence_s * size
        like = min(known, key=lambda n: abs(n - size))
        return 2 * CAUTION * self._tried[like].pass_s() * max(1.0, size / like)

    def _smaller_than_ran_out(self) -> int:
        """Return the next size to hope for where all that was tried ran out of memory."""
        out = [size for size, tried in self._tried.items() if tried.ran_out]
        if not out:
            return self._begin
        return max((n for n in doubling_sizes(self._sequences) if n < min(out)), default=1)
