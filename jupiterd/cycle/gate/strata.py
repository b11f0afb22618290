"""Whether a candidate that is better on the whole got worse somewhere.

Owns the strata, the tail among them. Doesn't know what a veto leads to.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from jupiterd.cycle.gate.scores import DocumentScore

STRATUM_MIN_DOCUMENTS = 10
"""A stratum with fewer documents is shown and vetoes nothing: its mean is noise."""

RARE_STRATUM = "rarest-quarter"
"""The quarter of the documents with the rarest tokens (by the unigram baseline): collapse shows
there first."""


def stratum_improvements(
    scores: Sequence[DocumentScore], improvements: Sequence[float]
) -> dict[str, float]:
    """Return the mean improvement of each stratum that can speak, and of the rarest quarter.

    Args:
        scores: of finite numbers.
        improvements: bits per byte that the candidate saves, for each of them.
    """
    strata: defaultdict[str, list[float]] = defaultdict(list)
    for score, improvement in zip(scores, improvements, strict=True):
        strata[score.stratum].append(improvement)
    # Chosen by a baseline that is neither contestant, so that the choice favours neither.
    rarity = [-score.unigram_nats / score.bytes for score in scores]
    rarest = sorted(range(len(scores)), key=lambda place: (rarity[place], scores[place].id))
    strata[RARE_STRATUM] = [improvements[place] for place in rarest[: len(scores) // 4]]
    return {
        name: math.fsum(values) / len(values)
        for name, values in sorted(strata.items())
        if len(values) >= STRATUM_MIN_DOCUMENTS
    }


def worst_stratum(strata: Mapping[str, float], veto_bpb: float) -> str:
    """Return the stratum that got worst, where it is worse by more than `veto_bpb`; or empty."""
    worst = min(strata, key=lambda name: strata[name], default="")
    return worst if worst and strata[worst] < -veto_bpb else ""
