"""Whether a candidate's text teaches: small students, trained alike but for who wrote for them.

Owns the comparison. Doesn't know how the small students are trained.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ProxyStudent:
    """Bits per byte on real held-out text of two small students, once for each seed."""

    seeds: tuple[int, ...]
    candidate_bpb: tuple[float, ...]
    """Trained with the candidate's text."""
    incumbent_bpb: tuple[float, ...]
    """Trained with the text of the generator in force; all else is the same."""

    @property
    def gain_bpb(self) -> float:
        """How many bits per byte the candidate's text saves, on average over the seeds."""
        pairs = zip(self.incumbent_bpb, self.candidate_bpb, strict=True)
        return math.fsum(theirs - ours for theirs, ours in pairs) / len(self.seeds)
