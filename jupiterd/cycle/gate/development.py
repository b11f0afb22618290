"""How a candidate does on development text, which is looked at in every round.

Owns the two numbers by which a generator is taken out of force again (`cycle.promotion`). Nothing
is promoted by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.gate.scores import DocumentScore, pooled_bpb


@dataclass(frozen=True)
class DevelopmentLook:
    """Bits per byte over all development text; infinite where a score isn't finite."""

    documents: int
    candidate_bpb: float
    incumbent_bpb: float


def look_at_development(scores: Sequence[DocumentScore]) -> DevelopmentLook | None:
    """Return how both do on the same text; None where none is held out for that."""
    if not scores:
        return None
    return DevelopmentLook(
        len(scores),
        pooled_bpb(scores, [score.candidate_nats for score in scores]),
        pooled_bpb(scores, [score.incumbent_nats for score in scores]),
    )
