"""How many sequences of each step every rank takes, by what it was measured to do.

Owns that division and when it changes. Doesn't know how speeds are measured or exchanged: all ranks
are handed the same rates in the same order, so all of them come to the same division.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from jupiterd.errors import Bug

FIRST_LOOK_STEPS = 5
"""Steps of an attempt before its first division by speed: the first ones warm up."""

LOOK_EVERY_STEPS = 10

WINDOW_STEPS = 10
"""A rank's rate is the median of its last steps: one hiccup changes nothing."""

WORTH_CHANGING = 0.1
"""Predicted gain, as a share of the step, below which a division is kept: equal machines never
measure quite alike, and another division rounds another way."""

Shares = tuple[int, ...]
"""Sequences of one step by rank; at least 1 each, but for ranks that aren't ready to train."""


def equal_shares(batch: int, ranks: int) -> Shares:
    """Return shares that differ by no more than one.

    Raises:
        Bug: there are fewer sequences than ranks.
    """
    return shares_by_rate(batch, [1.0] * ranks)


def shares_among(batch: int, ready: Sequence[bool]) -> Shares:
    """Return equal shares for those ranks that are ready, and none for the others.

    Raises:
        Bug: nobody is ready, or there are fewer sequences than ranks that are.
    """
    if not any(ready):
        raise Bug("no rank is ready to train")
    shares = iter(equal_shares(batch, sum(ready)))
    return tuple(next(shares) if is_ready else 0 for is_ready in ready)


def shares_by_rate(
    batch: int, rates: Sequence[float], least: Sequence[int] | None = None
) -> Shares:
    """Return the shares (of `batch` sequences) whose slowest rank is done first.

    Each further sequence goes to the rank that would be done with it the soonest, which is optimal
    for equal pieces of work on machines of unlike speed. Ties go to the lower rank.

    Args:
        batch: sequences of a step.
        rates: sequences per second of each rank, all above zero.
        least: what each takes however slow it is; 1 unless told.

    Raises:
        Bug: there are fewer sequences than that.
    """
    shares = [1] * len(rates) if least is None else list(least)
    if batch < sum(shares):
        raise Bug(f"{batch} sequences can't be shared by {sum(shares)} ranks")
    queue = [((shares[rank] + 1) / rate, rank) for rank, rate in enumerate(rates)]
    heapq.heapify(queue)
    for _ in range(batch - sum(shares)):
        _, rank = queue[0]
        shares[rank] += 1
        heapq.heapreplace(queue, ((shares[rank] + 1) / rates[rank], rank))
    return tuple(shares)


def step_time_s(shares: Sequence[int], rates: Sequence[float]) -> float:
    """Return how long the slowest rank computes."""
    return max(share / rate for share, rate in zip(shares, rates, strict=True))


@dataclass
class Balance:
    """The shares of a running gang; every rank keeps one, and all of them stay equal."""

    batch: int
    shares: Shares
    _steps: int = 0
    _rates: deque[Sequence[float]] = field(
        default_factory=lambda: deque[Sequence[float]](maxlen=WINDOW_STEPS)
    )

    def measured(self, rates: Sequence[float]) -> bool:
        """Take in what each rank did in one step, in sequences per second; say if shares change."""
        self._steps += 1
        if all(rate > 0 for rate in rates):
            self._rates.append(tuple(rates))
        if not self._is_due():
            return False
        usual = [median(step[rank] for step in self._rates) for rank in range(len(self.shares))]
        better = shares_by_rate(self.batch, usual)
        gain = 1 - step_time_s(better, usual) / step_time_s(self.shares, usual)
        if gain < WORTH_CHANGING:
            return False
        self.shares = better
        return True

    def _is_due(self) -> bool:
        is_look = self._steps == FIRST_LOOK_STEPS or self._steps % LOOK_EVERY_STEPS == 0
        return is_look and bool(self._rates) and len(self.shares) > 1
