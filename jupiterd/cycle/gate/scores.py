"""What every model made of one piece of held-out text.

Owns these value types. Doesn't know who scored, or what is concluded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.data.split import GATE

LN2 = math.log(2)

GENERAL = "general"
"""The part of text that isn't of the domain: it shows what a model has forgotten."""


@dataclass(frozen=True)
class DocumentScore:
    """What every model made of one held-out document, in nats over the same bytes."""

    id: str
    cluster: str
    stratum: str
    bytes: int
    tokens: int
    """Tokens of the candidate's tokenizer."""
    candidate_nats: float
    incumbent_nats: float
    """Of the last student that was shown to be better; the byte model's where there is none."""
    generator_nats: float
    """Of the generator in force; the byte model's where there is none."""
    byte_nats: float
    unigram_nats: float
    part: str = GATE
    """The part of the holdout that it is of, or GENERAL."""
    base_nats: float | None = None
    """Of the model that the cycle began with; None where it began with drawn weights."""

    def bpb(self, nats: float) -> float:
        """Return nats over this document as bits per byte."""
        return nats / (LN2 * self.bytes)

    @property
    def improvement_bpb(self) -> float:
        """Return how many bits per byte the candidate saves; negative where it is worse."""
        return (self.incumbent_nats - self.candidate_nats) / (LN2 * self.bytes)

    @property
    def against_base_bpb(self) -> float:
        """Return how many bits per byte the candidate saves the model that was brought."""
        return ((self.base_nats or 0.0) - self.candidate_nats) / (LN2 * self.bytes)

    @property
    def against_generator_bpb(self) -> float:
        """Return how many bits per byte the candidate saves the generator."""
        return (self.generator_nats - self.candidate_nats) / (LN2 * self.bytes)


@dataclass(frozen=True)
class ClozeScore:
    """Who filled one gap of a held-out text with what stood there."""

    id: str
    cluster: str
    kind: str
    """identifier, number or heading."""
    candidate_right: bool
    incumbent_right: bool
    generator_right: bool


def pooled_bpb(scores: Sequence[DocumentScore], nats: Sequence[float]) -> float:
    """Return bits per byte over all bytes; infinite where a score isn't finite."""
    total_bytes = sum(score.bytes for score in scores)
    total = math.fsum(nats) if all(map(math.isfinite, nats)) else math.inf
    return total / (LN2 * total_bytes) if total_bytes else math.inf
