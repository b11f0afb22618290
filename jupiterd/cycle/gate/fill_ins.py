"""Who fills the gaps of held-out text better: McNemar's exact test.

Owns that test. Doesn't know how gaps are chosen (`cycle.generation.cloze` does) or filled.

Of the gaps that only one of two models filled rightly, each falls to either with the chance of one
half where they are equally good (McNemar, Psychometrika 12, 1947; exact as a binomial tail). Gaps
of one cluster are taken one by one, so the test says "worse" somewhat too often, which holds a
candidate up and never promotes one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.gate.scores import ClozeScore

WORSE_ALPHA = 0.025
"""Below this the candidate counts as worse. It isn't spent over looks: it promotes nobody."""


@dataclass(frozen=True)
class ClozeComparison:
    """How candidate and generator filled the same gaps."""

    items: int
    candidate_right: int
    generator_right: int
    only_candidate: int
    """Filled rightly by the candidate alone."""
    only_generator: int
    p_worse: float
    """Chance of so many losses or more, were the candidate equally good."""
    p_better: float
    """Chance of so many wins or more, were the candidate equally good."""

    @property
    def is_worse(self) -> bool:
        """Say whether the candidate is shown to be worse."""
        return self.p_worse <= WORSE_ALPHA


def compare_cloze(rows: Sequence[ClozeScore]) -> ClozeComparison | None:
    """Return the comparison; None where there is no gap."""
    if not rows:
        return None
    wins = sum(row.candidate_right and not row.generator_right for row in rows)
    losses = sum(row.generator_right and not row.candidate_right for row in rows)
    return ClozeComparison(
        items=len(rows),
        candidate_right=sum(row.candidate_right for row in rows),
        generator_right=sum(row.generator_right for row in rows),
        only_candidate=wins,
        only_generator=losses,
        p_worse=half_tail(losses, wins + losses),
        p_better=half_tail(wins, wins + losses),
    )


def half_tail(at_least: int, tosses: int) -> float:
    """Return the chance of `at_least` heads among `tosses` of a fair coin, exactly."""
    outcomes = sum(math.comb(tosses, heads) for heads in range(at_least, tosses + 1))
    return outcomes / 2**tosses
