"""Whom the first student is compared with, where there is no student before it.

Owns the choice between the two baselines, and putting the chosen one into the scores. Doesn't know
how they count (`workers.evaluate`), or what is concluded.

A count of byte triples is the stronger one of code, one of tokens often of prose: beside the weaker
one a student looks better than it is. The gate's own documents mustn't choose, for the worse
baseline of just these would be the harder one by luck; development text does. Where there is none
byte triples stay, as in verdicts of before.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.gate.scores import DocumentScore, pooled_bpb

CHOICE = "strongest-on-development-text@1"
"""Name@version of the choice; what was given without one took byte triples."""

INCUMBENT, GENERATOR = "incumbent", "generator"


class Baseline(StrEnum):
    """A model that only counts."""

    BYTES = "order-2 byte model"
    TOKENS = "unigram"


def strongest_baseline(scores: Sequence[DocumentScore]) -> Baseline:
    """Return the baseline that needs fewer bits for the development text among these scores."""
    dev = [score for score in scores if score.part == DEV]
    if not dev:
        return Baseline.BYTES
    by_tokens = pooled_bpb(dev, [score.unigram_nats for score in dev])
    by_bytes = pooled_bpb(dev, [score.byte_nats for score in dev])
    return Baseline.TOKENS if by_tokens < by_bytes else Baseline.BYTES


def with_baseline(
    scores: Sequence[DocumentScore], baseline: Baseline, absent: Collection[str]
) -> list[DocumentScore]:
    """Return the scores with the baseline in the place of who is absent.

    absent: of INCUMBENT and GENERATOR those that there aren't
    """
    if baseline is Baseline.BYTES:  # who is absent was scored so
        return list(scores)
    return [
        replace(score, **{f"{name}_nats": score.unigram_nats for name in absent})
        for score in scores
    ]
