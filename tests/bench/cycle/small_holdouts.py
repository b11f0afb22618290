"""How the gate does on small collections, from the plan of what is held out to its bounds.

Owns the collections, drawing what a candidate saves on each document, and counting. A collection's
folders are unequal, as people's are, and the documents of a folder have a share of what makes them
differ in common. The plan is the one that cycles have; so are the test and its level at each look.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from jupiterd.cycle.data.split import GATE
from jupiterd.cycle.gate.alpha_spending import ledger_at
from jupiterd.cycle.gate.paired import measure
from jupiterd.cycle.gate.skewness import SKEW_ERRORS
from jupiterd.cycle.holdout.clusters import path_of_file
from jupiterd.cycle.holdout.holdout_choice import plan_holdout
from jupiterd.cycle.holdout.holdout_plan import Collected
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules

PAIRED_SD = 0.04
CLUSTER_SHARE = 0.3
"""Share of the variance that the documents of a folder have in common."""

ROUNDS = 20

Draw = Callable[[Random], float]
"""A number of mean 0 and variance 1."""


def symmetric(chance: Random) -> float:
    """Return a normal number."""
    return chance.gauss(0.0, 1.0)


def skewed(chance: Random) -> float:
    """Return a number of skewness -1: most are a little good, few are very bad."""
    return -(chance.gammavariate(4.0, 1.0) - 4.0) / 2.0


def very_skewed(chance: Random) -> float:
    """Return a number of skewness -2."""
    return 1.0 - chance.expovariate(1.0)


@dataclass(frozen=True)
class Collection:
    """Documents in folders, and what is held out of them for the gate."""

    documents: int
    folders: int
    rules: HoldoutRules

    @cached_property
    def judged(self) -> list[tuple[str, str]]:
        """The gate's documents: the folder of each, and the cluster by which it is counted."""
        names = [f"f{folder}/{number}.md" for number, folder in enumerate(self._folders())]
        text = [Collected(path_of_file(name), 4096, n) for n, name in enumerate(names)]
        plan, _ = plan_holdout(text, self.rules)
        gate = [each.path for each in text if plan.part_of(each.path) == GATE]
        return [(path[0], plan.counted_as(path)) for path in gate]

    @property
    def clusters(self) -> int:
        """How many clusters the gate counts."""
        return len({cluster for _, cluster in self.judged})

    def _folders(self) -> list[int]:
        """Return the folder of each document; the n-th has a share of 1 / sqrt(n)."""
        weights = [1 / math.sqrt(number + 1) for number in range(self.folders)]
        sizes = [max(1, int(self.documents * weight / sum(weights))) for weight in weights]
        found = [folder for folder, size in enumerate(sizes) for _ in range(size)]
        return found + [number % self.folders for number in range(self.documents - len(found))]

    def is_promoted(self, chance: Random, draw: Draw, true_gain_bpb: float, look: int) -> bool:
        """Draw a candidate of that true gain, and say whether it is shown to be better."""
        if len(self.judged) < self.rules.least_documents:
            return False
        if self.clusters < self.rules.least_clusters:
            return False
        shared_sd = PAIRED_SD * math.sqrt(CLUSTER_SHARE)
        own_sd = PAIRED_SD * math.sqrt(1 - CLUSTER_SHARE)
        of_folder: dict[str, float] = {}
        saved: list[float] = []
        for folder, _ in self.judged:
            if folder not in of_folder:
                of_folder[folder] = true_gain_bpb + shared_sd * draw(chance)
            saved.append(of_folder[folder] + own_sd * draw(chance))
        clusters = [cluster for _, cluster in self.judged]
        alpha = ledger_at(self.rules.alpha, look).for_each_test
        margin = self.rules.margin_bpb
        evidence = measure(saved, clusters, margin, alpha, skew_errors=SKEW_ERRORS)
        return evidence.lower_bound_bpb > margin


def false_promotions(collection: Collection, draw: Draw, cycles: int, seed: int) -> float:
    """Return the share of cycles in which a candidate that is no better is ever promoted."""
    chance = Random(seed)
    margin = collection.rules.margin_bpb
    fooled = sum(
        any(collection.is_promoted(chance, draw, margin, look) for look in range(1, ROUNDS + 1))
        for _ in range(cycles)
    )
    return fooled / cycles


def power(collection: Collection, gain_bpb: float, look: int, candidates: int, seed: int) -> float:
    """Return the share of candidates of that true gain that are promoted."""
    chance = Random(seed)
    promoted = sum(
        collection.is_promoted(chance, symmetric, gain_bpb, look) for _ in range(candidates)
    )
    return promoted / candidates
