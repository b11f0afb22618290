"""How much documents differ in what one model saves another, and so what gain a gate would see.

Owns these figures and that arithmetic. Doesn't know verdicts (`gate.power` reckons from what one of
them measured), or documents.

In round 1 a student is compared with counting, which is bad at some documents and worse at others;
later with the student before it, which is like it, and errs where it errs. So one figure won't do
for both. Each is that of real cycles (docs/gate.md lists them), and rather large than small: what
is promised should be kept. It didn't depend on how long the documents were, from 1 to 16 KiB.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from jupiterd.cycle.base.student_t import t_upper_quantile
from jupiterd.cycle.gate.alpha_spending import ledger_at
from jupiterd.cycle.gate.power import POWER
from jupiterd.cycle.gate.skewness import (
    SKEW_ERRORS,
    allowance,
    careful_quantile,
    skewness_error,
)
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules

BESIDE_COUNTING_SD_BPB: Final = 0.13
"""Between documents, of what a first student saves the stronger baseline."""

BESIDE_STUDENT_SD_BPB: Final = 0.04
"""Between documents, of what a student saves the one before it."""

ALIKE_SHARE: Final = 0.2
"""Share of their variance that documents of one cluster have in common."""


@dataclass(frozen=True)
class Comparison:
    """What a round's candidate is compared with, and what is known of how that scatters."""

    look: int = 1
    """How often a candidate has been judged, with this one."""
    beside_student: bool = False
    """It is the student before it, and not a baseline that counts."""
    standard_error_bpb: float = 0.0
    """Of the mean, as the last verdict of such a comparison measured it; 0: there was none."""
    is_brought: bool = False
    """It is the model that people have brought: no student was promoted yet."""

    def to_plain(self) -> dict[str, Any]:
        """Return it for a worker.

        One of an older build takes it, but for that of a model that was brought: it refuses what it
        doesn't know.
        """
        plain = asdict(self)
        if not self.is_brought:
            del plain["is_brought"]
        return plain


FIRST: Final = Comparison()
BROUGHT: Final = Comparison(beside_student=True, is_brought=True)
"""Round 1 of a cycle that begins with a model."""
LATER: Final = Comparison(2, beside_student=True)
"""The soonest that a student is compared with one before it."""


def detectable_bpb(
    documents: int, clusters: float, rules: HoldoutRules, comparison: Comparison = FIRST
) -> float:
    """Return the smallest true gain that is shown with a chance of 80 %; infinite: none is.

    Args:
        documents: that are scored.
        clusters: of which they are; effective ones.
        rules: the domain's.
        comparison: which round's.
    """
    if clusters < 2:
        return math.inf
    alpha, degrees = ledger_at(rules.alpha, comparison.look).for_each_test, clusters - 1
    given_away = allowance(SKEW_ERRORS * skewness_error(math.ceil(clusters)), clusters)
    least = careful_quantile(t_upper_quantile(alpha, degrees), given_away)
    errors = least + t_upper_quantile(1 - POWER, degrees)
    error = comparison.standard_error_bpb or _standard_error(documents, clusters, comparison)
    return rules.margin_bpb + errors * error


def _standard_error(documents: int, clusters: float, comparison: Comparison) -> float:
    spread = BESIDE_STUDENT_SD_BPB if comparison.beside_student else BESIDE_COUNTING_SD_BPB
    alike = ALIKE_SHARE / clusters + (1 - ALIKE_SHARE) / max(documents, 1)
    return spread * math.sqrt(alike)
