"""What each look at the holdout may cost: alpha is spent over all looks of a cycle, never twice.

Owns the ledger's arithmetic. Doesn't know what is looked at.

Look k may spend alpha * 6 / (pi^2 k^2); over all looks for ever that adds up to alpha. Half of it
is for the question whether a candidate is better, half for whether it isn't worse than the
generator. Where a judge may break a tie, it has a half as well: a candidate that isn't better has
two ways to be promoted then, and one that is worse than the generator has one as before
(`tie_break` says why that is enough).
"""

import math
from dataclasses import dataclass

from jupiterd.errors import Bug

QUESTIONS_OF_A_LOOK = 2
"""Tests that share a look's alpha."""


@dataclass(frozen=True)
class AlphaLedger:
    """What one look spends, with those before it and what is left for all later ones."""

    alpha: float
    look: int
    spent_before: float
    this_look: float
    left: float

    @property
    def for_each_test(self) -> float:
        """The one-sided level of each of the look's tests."""
        return self.this_look / QUESTIONS_OF_A_LOOK


def spent_alpha(alpha: float, look: int) -> float:
    """Return what look number `look` (from 1) may spend; the sum over all looks is `alpha`."""
    if look < 1:
        raise Bug(f"looks are counted from 1, not {look}")
    return alpha * 6 / (math.pi**2 * look**2)


def ledger_at(alpha: float, look: int) -> AlphaLedger:
    """Return the ledger as it stands with this look."""
    now = spent_alpha(alpha, look)
    before = math.fsum(spent_alpha(alpha, earlier) for earlier in range(1, look))
    return AlphaLedger(alpha, look, before, now, alpha - before - now)
