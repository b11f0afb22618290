"""What a candidate has forgotten of text that isn't of its domain.

Owns the comparison with the model that was brought, on the same general text. Doesn't know where
that text lies, or what follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.gate.scores import GENERAL, DocumentScore, pooled_bpb


@dataclass(frozen=True)
class Forgetting:
    """How many bits per byte general text takes."""

    documents: int
    candidate_bpb: float
    base_bpb: float

    @property
    def growth(self) -> float:
        """Return by which share the candidate needs more; negative where it needs fewer."""
        return self.candidate_bpb / self.base_bpb - 1 if self.base_bpb else 0.0

    def is_too_much(self, most: float) -> bool:
        """Say whether it needs more by a larger share than that, or can't be scored."""
        return not self.growth <= most


def forgotten(scores: Sequence[DocumentScore]) -> Forgetting | None:
    """Return what was forgotten; None where there is no model that was brought, or no such text."""
    general = [each for each in scores if each.part == GENERAL and each.base_nats is not None]
    if not general:
        return None
    return Forgetting(
        documents=len(general),
        candidate_bpb=pooled_bpb(general, [each.candidate_nats for each in general]),
        base_bpb=pooled_bpb(general, [each.base_nats or 0.0 for each in general]),
    )
