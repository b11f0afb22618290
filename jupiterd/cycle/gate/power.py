"""What the held-out text at hand can show, and how much of it would be needed.

Owns that arithmetic, from the spread that was measured. Doesn't know verdicts.

A true improvement is shown with a chance of 80 % where it lies (t_alpha + t_0.2) standard errors
above what is to be exceeded. A standard error falls with the root of the number of clusters, which
are taken to be of the size of those measured.
"""

import math
from dataclasses import dataclass

from jupiterd.cycle.base.student_t import t_upper_quantile
from jupiterd.cycle.gate.paired import Evidence

POWER = 0.8
"""Chance of showing what is there."""

USUAL_MARGIN_BPB = 0.005
"""What is to be seen where a domain asks for no margin."""

_MOST_ROUNDS = 20


@dataclass(frozen=True)
class TextPower:
    """How far the held-out text sees."""

    detectable_bpb: float
    """The smallest true improvement that this text shows with a chance of 80 %."""
    wanted_bpb: float
    """A true improvement of twice the margin, which is to be shown to exceed it."""
    documents: int
    """How many would show that with the same chance."""
    clusters: int
    """How many clusters they would be of."""


def reach_of(
    evidence: Evidence, documents: int, clusters: int, margin_bpb: float, alpha: float
) -> TextPower:
    """Return what these documents of these clusters show at one-sided `alpha`."""
    error, degrees = evidence.standard_error_bpb, evidence.degrees_of_freedom
    step = margin_bpb or USUAL_MARGIN_BPB
    needed = _growth(error / step, degrees, alpha)
    return TextPower(
        detectable_bpb=margin_bpb + _standard_errors(alpha, degrees) * error,
        wanted_bpb=margin_bpb + step,
        documents=max(2, math.ceil(documents * needed)),
        clusters=max(2, math.ceil(clusters * needed)),
    )


def _growth(errors_of_a_step: float, degrees: float, alpha: float) -> float:
    """Return how many times the text is needed; more of it has more degrees of freedom, too."""
    growth, before = 1.0, 0.0
    for _ in range(_MOST_ROUNDS):
        if growth == before:
            break
        # Two digits: more would change nothing that anybody could see, and few are soon known.
        more_degrees = max(1.0, float(f"{(degrees + 1) * growth - 1:.2g}"))
        before, growth = growth, (_standard_errors(alpha, more_degrees) * errors_of_a_step) ** 2
    return growth


def _standard_errors(alpha: float, degrees: float) -> float:
    return t_upper_quantile(alpha, degrees) + t_upper_quantile(1 - POWER, degrees)
