"""Whether one side wins more often than chance has it, where wins come in clusters: exactly.

Owns the test and its bounds. Doesn't know what is won.

Each cluster has a balance: its wins less its losses. Where it makes no difference who is who,
every cluster's balance might as well have the other sign, each by itself: that is the null
hypothesis, under which the sum of the balances has a distribution that is known exactly (a
randomization test over clusters: Canay, Romano & Shaikh, Econometrica 85(3), 2017). It holds for
few clusters, unequal ones, and balances of any size, and where each cluster has one decided pair it
is the sign test. The bounds turn it round: they are those of the chance that a cluster falls to
ours, by the same distribution with coins that aren't fair; of clusters with one pair they are
Clopper's and Pearson's (Biometrika 26(4), 1934).
"""

from collections.abc import Sequence
from typing import Final

_HALVINGS: Final = 24
"""Of an interval of chances: seven digits, of which two are shown."""


def flipped_tail(balances: Sequence[int]) -> float:
    """Return the chance of such a sum or a greater one, were every sign a fair coin's."""
    sizes = _sizes(balances)
    return _tail_of_coins(sizes, sum(balances)) / 2 ** len(sizes)


def chance_bounds(balances: Sequence[int], alpha: float) -> tuple[float, float]:
    """Return what the chance that a cluster falls to ours lies between, each at one-sided alpha.

    The lower one is above a half where, but for rounding, `flipped_tail` is below alpha.
    """
    lower = _lower_bound(_sizes(balances), sum(balances), alpha)
    upper = 1 - _lower_bound(_sizes(balances), -sum(balances), alpha)
    return lower, upper


def _sizes(balances: Sequence[int]) -> list[int]:
    return sorted(abs(balance) for balance in balances if balance)


def _lower_bound(sizes: Sequence[int], total: int, alpha: float) -> float:
    """Return the least chance at which so great a sum isn't rarer than alpha."""
    low, high = 0.0, 1.0
    if total <= -sum(sizes):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _tail(sizes, total, middle) < alpha:
            low = middle
        else:
            high = middle
    return low


def _tail_of_coins(sizes: Sequence[int], total: int) -> int:
    """Return in how many ways signs give such a sum or a greater one; whole numbers, so exact."""
    counts = [1]  # place k: in how many ways the sizes so far that are positive add up to k
    for size in sizes:
        longer = counts + [0] * size
        for place, number in enumerate(counts):
            longer[place + size] += number
        counts = longer
    return sum(counts[_least(sizes, total) :])


def _tail(sizes: Sequence[int], total: int, chance: float) -> float:
    """Return the chance of such a sum or a greater one, where each sign is positive with chance."""
    chances = [1.0]
    for size in sizes:
        longer = [value * (1 - chance) for value in chances] + [0.0] * size
        for place, value in enumerate(chances):
            longer[place + size] += value * chance
        chances = longer
    return sum(chances[_least(sizes, total) :])


def _least(sizes: Sequence[int], total: int) -> int:
    """Return what the positive sizes must add up to: twice that, less all, is the sum."""
    return max(0, -(-(total + sum(sizes)) // 2))
