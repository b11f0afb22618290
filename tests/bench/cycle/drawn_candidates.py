"""Candidates whose true improvement is known, before the gate as it is shipped.

Owns the chance that draws their scores, and counting what the gate makes of them. Each document's
improvement is the candidate's true one, what its cluster shares, and what is its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from jupiterd.cycle.gate.case import Findings, GateSettings
from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.gate.paired import measure
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import DocumentScore
from jupiterd.cycle.gate.verdict import decide

BYTES = 4096
NATS_OF_BPB = math.log(2) * BYTES
CANDIDATE_NATS = 2.0 * NATS_OF_BPB

ALPHA = 0.05
WORKS = Findings(Sanity(loads=True, completions=8))


@dataclass(frozen=True)
class HeldOut:
    """Held-out text: how many documents each cluster has, and how much they differ."""

    cluster_sizes: tuple[int, ...]
    paired_sd: float = 0.04
    cluster_share: float = 0.2
    """Share of the variance that the documents of a cluster have in common."""

    @property
    def settings(self) -> GateSettings:
        """The rules of a domain that has just this text; the rest is as shipped."""
        return GateSettings(ALPHA, 0.005, 0.02, sum(self.cluster_sizes), len(self.cluster_sizes))

    def candidate(self, chance: Random, true_gain_bpb: float) -> list[DocumentScore]:
        """Return the scores of a candidate."""
        shared_sd = self.paired_sd * math.sqrt(self.cluster_share)
        own_sd = self.paired_sd * math.sqrt(1 - self.cluster_share)
        scores: list[DocumentScore] = []
        for cluster, size in enumerate(self.cluster_sizes):
            shared = chance.gauss(true_gain_bpb, shared_sd)
            for _ in range(size):
                nats = CANDIDATE_NATS + (shared + chance.gauss(0.0, own_sd)) * NATS_OF_BPB
                scores.append(_scored(len(scores), cluster, nats))
        return scores


def _scored(number: int, cluster: int, incumbent_nats: float) -> DocumentScore:
    rarity = 4.0 + (number * 7919 % 101) / 100
    return DocumentScore(
        f"{number:05}", str(cluster), "code", BYTES, 1000, CANDIDATE_NATS, incumbent_nats,
        incumbent_nats, 3.0 * NATS_OF_BPB, rarity * NATS_OF_BPB,
    )  # fmt: skip


@dataclass(frozen=True)
class Fooled:
    """How many cycles promoted a candidate that wasn't better by more than the margin."""

    cycles: int
    gate: int
    no_ledger: int
    """The same test, with 5 % at every look."""
    naive: int
    """That, and documents of a cluster taken for independent ones."""


def null_cycles(chance: Random, text: HeldOut, cycles: int, rounds: int = 20) -> Fooled:
    """Draw cycles whose candidates are all exactly at the margin: the hardest null there is."""
    fooled = [0, 0, 0]
    for _ in range(cycles):
        for way, was_fooled in enumerate(_one_cycle(chance, text, rounds)):
            fooled[way] += was_fooled
    return Fooled(cycles, *fooled)


def _one_cycle(chance: Random, text: HeldOut, rounds: int) -> Sequence[bool]:
    """Return whether the gate, one without a ledger and a naive one were ever fooled."""
    settings = text.settings
    gate = no_ledger = naive = False
    for look in range(1, rounds + 1):
        scores = text.candidate(chance, settings.margin_bpb)
        gate = gate or is_promoted(scores, settings, look)
        saved = [score.improvement_bpb for score in scores]
        no_ledger = no_ledger or _beats(saved, [score.cluster for score in scores], settings)
        naive = naive or _beats(saved, [score.id for score in scores], settings)
        if gate and no_ledger and naive:
            break
    return gate, no_ledger, naive


def promotions(
    chance: Random, text: HeldOut, true_gain_bpb: float, candidates: int, look: int = 1
) -> int:
    """Return how many of so many candidates of one true improvement are promoted."""
    return sum(
        is_promoted(text.candidate(chance, true_gain_bpb), text.settings, look)
        for _ in range(candidates)
    )


def is_promoted(scores: Sequence[DocumentScore], settings: GateSettings, look: int) -> bool:
    """Say whether the gate as it is shipped promotes it."""
    return decide(scores, settings, look, WORKS).decision is Decision.PROMOTE


def _beats(saved: Sequence[float], clusters: Sequence[str], settings: GateSettings) -> bool:
    evidence = measure(saved, clusters, settings.margin_bpb, ALPHA)
    return evidence.lower_bound_bpb > settings.margin_bpb
