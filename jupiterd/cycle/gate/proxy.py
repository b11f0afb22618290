"""Whether text teaches: small students, trained alike but for the generated part of their text.

Owns the comparison of two arms. Doesn't know how the small students are trained, nor what follows.

The arms are paired by seed: the same first weights, the same real text, the same number of tokens.
Two or three seeds say little of how much a result depends on the seed, so what is measured of that
is put together with what is known of proxies of this size, as if it had been measured with
PRIOR_DEGREES degrees of freedom (a moderated t test: Smyth, Statistical Applications in Genetics
and Molecular Biology 3(1), 2004). With n seeds and d = bits per byte that our arm saves,

    variance = (PRIOR_DEGREES * 2 * spread^2 + sum of (d - mean)^2) / (PRIOR_DEGREES + n - 1)

and the mean lies above, or below, a bound at the one-sided level ALPHA. Where the prior is right,
two arms of the same text are told apart in that share of comparisons, each way; the tests simulate
it, also where the prior is wrong.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jupiterd.cycle.base.student_t import t_upper_quantile

ALPHA = 0.05
"""The chance that text as good as the other's is taken for worse; and for better."""

PRIOR_DEGREES = 4
"""So many degrees of freedom has what is known beforehand of the spread between seeds."""

POWER = 0.8

LEAST_SHARE = 0.05
"""Of an arm's bytes, generated: with less, small students can't tell even nonsense from good text
(`make bench-cycle ONLY=students`), so that what they would be told apart by is chance."""

KNOWS_NOTHING_BPB = 8.0
"""Of a small student whose training went wrong: as if it took every byte for equally likely."""


class Arm(StrEnum):
    """What the generated part of a small student's text is."""

    CANDIDATE = "candidate"
    """Written by the candidate."""
    INCUMBENT = "incumbent"
    """Written by the generator in force."""
    MIX = "mix"
    """What the round packed."""
    REAL = "real"
    """None: real text alone."""


@dataclass(frozen=True)
class ProxyRun:
    """One small student: what it was trained on, and how well it learned."""

    arm: str
    seed: int
    bpb: float
    """Mean bits per byte over real documents that it wasn't trained on."""
    documents: int
    """How many those are."""
    tokens: int
    """Trained on."""
    parameters: int
    synthetic_share: float
    """Of the bytes of its arm's text."""
    shards: str
    """BLAKE3 of its arm's tokens."""
    engine: str
    """And the device."""
    spread_bpb: float
    """What is known of proxies of this size, see `ArmComparison`."""


@dataclass(frozen=True)
class ArmComparison:
    """Two arms, seed by seed."""

    ours: str
    theirs: str
    seeds: tuple[int, ...]
    ours_bpb: tuple[float, ...]
    theirs_bpb: tuple[float, ...]
    gain_bpb: float
    """How many bits per byte our arm saves, on average over the seeds."""
    lower_bound_bpb: float
    upper_bound_bpb: float
    spread_bpb: float
    """How much a single student's result is taken to depend on its seed, beforehand."""
    detectable_bpb: float
    """A true loss of so much is noticed with a chance of 80 %."""

    @property
    def is_better(self) -> bool:
        """Say whether our arm was shown to learn more."""
        return self.lower_bound_bpb > 0

    @property
    def is_worse(self) -> bool:
        """Say whether our arm was shown to learn less."""
        return self.upper_bound_bpb < 0

    def text(self) -> str:
        """Return the difference with its bounds, for people."""
        return (
            f"{self.gain_bpb:+.4f} bits per byte, between {self.lower_bound_bpb:+.4f} and "
            f"{self.upper_bound_bpb:+.4f}, over {len(self.seeds)} seeds"
        )


def compare(runs: Iterable[ProxyRun], ours: Arm, theirs: Arm) -> ArmComparison | None:
    """Return how two arms compare over the seeds that both have; None where there is none."""
    found = {(run.arm, run.seed): run for run in runs}
    seeds = tuple(
        sorted(seed for arm, seed in found if arm == ours and (str(theirs), seed) in found)
    )
    if not seeds:
        return None
    ours_bpb = tuple(found[str(ours), seed].bpb for seed in seeds)
    theirs_bpb = tuple(found[str(theirs), seed].bpb for seed in seeds)
    saved = [other - own for own, other in zip(ours_bpb, theirs_bpb, strict=True)]
    spread = found[str(ours), seeds[0]].spread_bpb
    mean = math.fsum(saved) / len(saved)
    degrees = PRIOR_DEGREES + len(seeds) - 1
    error = _standard_error(saved, mean, spread, degrees)
    reach = t_upper_quantile(ALPHA, degrees) * error
    return ArmComparison(
        ours=str(ours),
        theirs=str(theirs),
        seeds=seeds,
        ours_bpb=ours_bpb,
        theirs_bpb=theirs_bpb,
        gain_bpb=mean,
        lower_bound_bpb=mean - reach,
        upper_bound_bpb=mean + reach,
        spread_bpb=spread,
        detectable_bpb=reach + t_upper_quantile(1 - POWER, degrees) * error,
    )


def too_little(runs: Iterable[ProxyRun], ours: Arm) -> str:
    """Say that the generated text of an arm is too small a share to teach or to harm; else empty.

    Where its rival has more of it, both are compared all the same.
    """
    shares = {run.arm: run.synthetic_share for run in runs}
    if ours not in shares or max(shares.values()) >= LEAST_SHARE:
        return ""
    return too_little_words(shares[ours])


def too_little_words(share: float) -> str:
    """Return the sentence for a share of generated text that is below LEAST_SHARE."""
    return (
        f"generated text is {share:.1%} of the small students' text, and below {LEAST_SHARE:.0%} "
        "they show nothing but chance"
    )


def _standard_error(saved: Sequence[float], mean: float, spread: float, degrees: int) -> float:
    measured = math.fsum((each - mean) ** 2 for each in saved)
    variance = (PRIOR_DEGREES * 2 * spread**2 + measured) / degrees
    return math.sqrt(variance / len(saved))


@dataclass(frozen=True)
class Taught:
    """What is known of how a candidate's text, and the round's, teach small students."""

    runs: Sequence[ProxyRun] = ()
    why_not: str = ""
    """Why none were trained on the candidate's text; empty where nobody says."""
    wrote_nothing: str = ""
    """What became of the candidate's text, where none of it may be trained on."""

    @property
    def by_candidate(self) -> ArmComparison | None:
        """The candidate's text beside that of the generator in force, or beside real text alone.

        None where there are no such students, or too little generated text in their text.
        """
        if self.too_little:
            return None
        other = {run.arm for run in self.runs} & {Arm.INCUMBENT}
        return compare(self.runs, Arm.CANDIDATE, Arm.INCUMBENT if other else Arm.REAL)

    @property
    def too_little(self) -> str:
        """Say that the candidate's text is too small a share for any effect; else empty."""
        return too_little([run for run in self.runs if run.arm != Arm.MIX], Arm.CANDIDATE)

    @property
    def by_mix(self) -> ArmComparison | None:
        """The control: what the round packed beside real text alone; None as `by_candidate`."""
        mixed = [run for run in self.runs if run.arm in {Arm.MIX, Arm.REAL}]
        return None if too_little(mixed, Arm.MIX) else compare(self.runs, Arm.MIX, Arm.REAL)
