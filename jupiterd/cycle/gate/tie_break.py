"""A judge's word on a candidate that the statistics neither show to be better nor to be worse.

Owns the rule: when a judge may be heard, whether this one can judge at all, and what its answers
come to. Doesn't know how pairs are made or asked about (`cycle.judge`).

The rule
1. A judge is heard where a candidate isn't shown to be better than the last student by the margin,
   and is shown not to be worse by more than the margin (the lower bound of the same test, at the
   same level), no stratum vetoes, it is sane, and it is not worse than the generator. It never
   overrules any of these, and what the small students show comes after it.
2. It is tried first, on planted pairs, each in both orders. It is heard if it named the real text
   in both orders of so many that a chance of 80 % or less is ruled out at 95 % (one-sided, exact
   binomial), and if it contradicted itself in a tenth of the pairs at most. Else it abstains.
3. Each pair of answers is shown in both orders, without names, and as long as each other; a
   judge that contradicts itself has said nothing. Wins less losses are counted by cluster, and the
   candidate is preferred if signs that are tossed would give such a sum, or a greater one, with a
   chance of no more than half of this look's alpha (`sign_flips`).

What it costs. A candidate is promoted wrongly if it is no better, neither in bits per byte by more
than the margin nor in its answers; or if it is worse than the generator by more than the margin. In
the first case it has two ways to be promoted, each taken with a chance of half of the look's alpha
at most: the test of bits per byte, and the judge. In the second case it has to pass the test beside
the generator, whoever is heard: half again. So a look costs no more than its alpha, and all looks
for ever what the domain allows. The tests simulate that with judges that toss coins, that like
the first place, and that are good.

What no arithmetic can rule out: that a judge prefers one of two equally good students for its
manner. Such a candidate can be promoted. It isn't worse than the last student by more than the
margin, but for half of alpha again; and the last student stays the one to beat, so that no chain of
such promotions lowers the bar.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

from jupiterd.cycle.gate.sign_flips import chance_bounds, flipped_tail
from jupiterd.cycle.judge.pair import Pair, PairOutcome

LEAST_RIGHT: Final = (4, 5)
"""The chance of naming the real text in both orders that is to be ruled out, as a fraction."""

TRIAL_ALPHA: Final = 0.05
"""The chance that a judge of just that skill is heard."""

MOST_INCONSISTENT: Final = 0.1
"""Greatest share of the planted pairs in which a judge may contradict itself."""


@dataclass(frozen=True)
class Judged:
    """What a judge said, or why it said nothing."""

    judge: str
    """What people call it."""
    pairs: Sequence[Pair] = ()
    why_not: str = ""
    """Why nobody was asked; empty where somebody was, or nobody has been yet."""


@dataclass(frozen=True)
class JudgeTrial:
    """How a judge did on pairs of which the better text is known."""

    pairs: int
    right: int
    """It named the real text in both orders."""
    wrong: int
    """It named the spoilt one in both orders."""
    inconsistent: int
    """It named the same place twice, or gave an answer that can't be read."""
    unreadable: int
    """Answers that can't be read; there are two for each pair."""
    named_first: int
    """Answers that named the place shown first: about a half, where the place is nothing to it."""
    right_by_kind: Mapping[str, tuple[int, int]]
    """Way of spoiling -> (pairs, those that it judged rightly)."""
    p: float
    """Chance of so many right or more, were it right with a chance of 80 %."""
    trouble: str
    """Why it isn't heard; empty where it is."""


@dataclass(frozen=True)
class Preference:
    """Whose answers a judge preferred."""

    pairs: int
    clusters: int
    wins: int
    """Of the candidate, in both orders."""
    losses: int
    ties: int
    p: float
    """Chance of such a balance or a better one, were it nothing to the judge who wrote."""
    alpha: float
    """What p may be at most."""
    lower_bound: float
    """The chance that a cluster falls to the candidate is above this, at that level."""
    upper_bound: float

    @property
    def is_won(self) -> bool:
        """Say whether the candidate was shown to be preferred."""
        return self.p <= self.alpha and self.wins > self.losses


@dataclass(frozen=True)
class TieBreak:
    """What a judge is worth, and what it says."""

    judge: str
    why_not: str
    trial: JudgeTrial | None
    """None where it wasn't asked."""
    preference: Preference | None
    """None where it wasn't asked, or isn't heard."""


def weigh(judged: Judged, alpha: float) -> TieBreak:
    """Return what a judge's answers come to, whatever their order, at one-sided `alpha`."""
    pairs = sorted(judged.pairs, key=lambda pair: pair.id)
    planted = [pair for pair in pairs if pair.is_planted]
    unplanted = [pair for pair in pairs if not pair.is_planted]
    if not pairs:
        return TieBreak(judged.judge, judged.why_not, None, None)
    trial = try_judge(planted)
    preference = None if trial.trouble else _preferred(unplanted, alpha)
    return TieBreak(judged.judge, judged.why_not, trial, preference)


def try_judge(planted: Sequence[Pair]) -> JudgeTrial:
    """Return how a judge did, and whether it may be heard."""
    outcomes = Counter(pair.outcome for pair in planted)
    choices = [choice for pair in planted for choice in pair.choices]
    kinds = Counter(pair.kind for pair in planted)
    right = Counter(pair.kind for pair in planted if pair.outcome is PairOutcome.WIN)
    p = _binomial_tail(outcomes[PairOutcome.WIN], len(planted))
    inconsistent = outcomes[PairOutcome.TIE]
    return JudgeTrial(
        pairs=len(planted),
        right=outcomes[PairOutcome.WIN],
        wrong=outcomes[PairOutcome.LOSS],
        inconsistent=inconsistent,
        unreadable=choices.count(None),
        named_first=choices.count(1),
        right_by_kind={kind: (number, right[kind]) for kind, number in sorted(kinds.items())},
        p=p,
        trouble=_trouble(len(planted), outcomes, p),
    )


def _trouble(pairs: int, outcomes: Mapping[PairOutcome, int], p: float) -> str:
    right, inconsistent = outcomes[PairOutcome.WIN], outcomes[PairOutcome.TIE]
    if p > TRIAL_ALPHA:
        return (
            f"it named the real text in both orders of {right} of {pairs} planted pairs, which "
            f"doesn't rule out that it is right in 80 % or less"
        )
    if inconsistent > MOST_INCONSISTENT * pairs:
        return f"it contradicted itself in {inconsistent} of {pairs} planted pairs"
    return ""


def _preferred(unplanted: Sequence[Pair], alpha: float) -> Preference:
    outcomes = Counter(pair.outcome for pair in unplanted)
    balances: defaultdict[str, int] = defaultdict(int)
    for pair in unplanted:
        balances[pair.cluster] += _WORTH[pair.outcome]
    found = [*balances.values()]
    lower, upper = chance_bounds(found, alpha)
    return Preference(
        pairs=len(unplanted),
        clusters=len(found),
        wins=outcomes[PairOutcome.WIN],
        losses=outcomes[PairOutcome.LOSS],
        ties=outcomes[PairOutcome.TIE],
        p=flipped_tail(found),
        alpha=alpha,
        lower_bound=lower,
        upper_bound=upper,
    )


_WORTH: Final = {PairOutcome.WIN: 1, PairOutcome.LOSS: -1, PairOutcome.TIE: 0}


def _binomial_tail(at_least: int, tries: int) -> float:
    """Return the chance of so many successes or more at `LEAST_RIGHT`; whole numbers, so exact."""
    right, of = LEAST_RIGHT
    outcomes = sum(
        comb(tries, k) * right**k * (of - right) ** (tries - k) for k in range(at_least, tries + 1)
    )
    return outcomes / of**tries
