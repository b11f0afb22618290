"""Whether text can be judged, how well, and what would help: said before anything is spent.

Owns that answer, from counts alone. Doesn't know where they come from: `domain lint`, `cycle plan`
and `cycle start` read names for some seconds, and the step after collecting has read everything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.data.clusters import Level
from jupiterd.cycle.data.holdout_choice import (
    as_many_as_are_scored,
    choose_level,
    counted_by,
)
from jupiterd.cycle.data.holdout_rules import (
    MOST_GATE_SHARE,
    MOST_HELD_OUT,
    HoldoutRules,
    wanted_parts,
)
from jupiterd.cycle.gate.looks import ledger_at
from jupiterd.cycle.gate.power import POWER
from jupiterd.cycle.student_t import t_upper_quantile
from jupiterd.formats import counted

PAIRED_SD_BPB: Final = 0.04
"""Of the differences between two students on a document; 0.04 to 0.15 were measured."""

ALIKE_SHARE: Final = 0.2
"""Share of their variance that documents of one cluster have in common."""

BYTES_OF_TOKEN: Final = 4
"""Of most text; only for people to read."""


SEES_WELL_BPB: Final = 0.03
"""A gain that a round usually brings, and a verdict should see."""

WHAT_HELPS: Final = "add text, or start with --without-verdict"
"""Where there is too little of it."""

_MORE: Final = "with more documents, from more folders or sites, a smaller gain would show"

_MANY: Final = 1_000_000


@dataclass(frozen=True)
class TextCounts:
    """What a domain's sources come to, or seem to."""

    documents: int
    """Of those long enough to be scored."""
    bytes: int
    levels: Sequence[Level]
    """Their clusters, the fewest first, as `clusters.levels_of` counts them."""

    @property
    def tokens(self) -> int:
        """Return about how many tokens that is."""
        return self.bytes // BYTES_OF_TOKEN


@dataclass(frozen=True)
class HoldoutOutlook:
    """Whether a verdict is possible, and how well it would see."""

    can_be_judged: bool
    gate_documents: int
    gate_clusters: int
    dev_documents: int
    held_out_share: float
    """Of all documents."""
    clusters_are: str
    """What a cluster is, in words."""
    detectable_bpb: float
    """The smallest true gain that the first round shows with a chance of 80 %, where documents
    differ as they usually do; infinite where there is no verdict."""
    answer: str
    """Can it be judged, and how well? One sentence."""
    help: str
    """What would help; empty: nothing has to."""


def holdout_outlook(counts: TextCounts, rules: HoldoutRules) -> HoldoutOutlook:
    """Return whether this text can be judged, how well, and what would help."""
    if not counts.documents or not counts.levels:
        return _impossible(counts, rules, 0, 0, "document")
    wanted = wanted_parts(counts.documents, rules)
    whole, _ = choose_level(counts.levels, wanted, rules)
    level = _counted_by(counts, whole, wanted.gate / counts.documents, rules)
    if level.depth < whole.depth:
        wanted = as_many_as_are_scored(wanted, level, rules)
    if (
        wanted.gate < rules.least_documents
        or level.clusters < rules.least_clusters
        or wanted.total > MOST_HELD_OUT * counts.documents
    ):
        return _impossible(counts, rules, wanted.gate, level.clusters, level.name)
    seen = detectable_bpb(wanted.gate, level.effective, rules)
    return HoldoutOutlook(
        can_be_judged=True,
        gate_documents=wanted.gate,
        gate_clusters=level.clusters,
        dev_documents=wanted.dev,
        held_out_share=wanted.total / counts.documents,
        clusters_are=level.name,
        detectable_bpb=seen,
        answer=f"yes: {wanted.total:,} of {counts.documents:,} documents are held out, "
        f"{wanted.gate:,} of them for the gate; it would show a gain of about {seen:.3f} bits per "
        f"byte with a chance of {POWER:.0%}",
        help="" if seen <= SEES_WELL_BPB else _MORE,
    )


def _counted_by(counts: TextCounts, whole: Level, share: float, rules: HoldoutRules) -> Level:
    """Return the level by which the gate counts, with the clusters that it would have.

    Args:
        counts: of the text.
        whole: the level whose clusters are held out as wholes.
        share: of all documents that the gate has.
        rules: the domain's.
    """
    larger = None if rules.fraction is not None else counted_by(counts.levels, whole, rules)
    if larger is None:
        return Level(whole.depth, math.floor(whole.clusters * share), whole.effective * share)
    # It has as many documents of each as of any other, of as many as there are documents for.
    clusters = min(larger.clusters, math.floor(counts.documents * share))
    return Level(larger.depth, clusters, clusters)


def detectable_bpb(
    documents: int,
    clusters: float,
    rules: HoldoutRules,
    look: int = 1,
    paired_sd_bpb: float = PAIRED_SD_BPB,
) -> float:
    """Return the smallest true gain that is shown with a chance of 80 %.

    Args:
        documents: that are scored.
        clusters: of which they are; effective ones.
        rules: the domain's.
        look: how often a candidate has been judged, with this one.
        paired_sd_bpb: how much documents differ in what one student saves the other.
    """
    if clusters < 2:
        return math.inf
    alpha, degrees = ledger_at(rules.alpha, look).for_each_test, clusters - 1
    alike = ALIKE_SHARE / clusters + (1 - ALIKE_SHARE) / max(documents, 1)
    errors = t_upper_quantile(alpha, degrees) + t_upper_quantile(1 - POWER, degrees)
    return rules.margin_bpb + errors * paired_sd_bpb * math.sqrt(alike)


def least_documents(rules: HoldoutRules) -> int:
    """Return about how many documents there must be for a verdict."""
    share = MOST_GATE_SHARE
    if rules.fraction is not None:
        share = max(wanted_parts(_MANY, rules).gate / _MANY, 1 / _MANY)
    return math.ceil(max(rules.least_documents, rules.least_clusters) / share)


def _impossible(
    counts: TextCounts, rules: HoldoutRules, documents: int, clusters: int, name: str
) -> HoldoutOutlook:
    return HoldoutOutlook(
        can_be_judged=False,
        gate_documents=documents,
        gate_clusters=clusters,
        dev_documents=0,
        held_out_share=0.0,
        clusters_are=name,
        detectable_bpb=math.inf,
        answer=f"{counted(counts.documents, 'document')}, about {counts.tokens:,} tokens; "
        f"a verdict needs at least {least_documents(rules):,}{_of_clusters(clusters, rules)}",
        help=WHAT_HELPS,
    )


def _of_clusters(clusters: int, rules: HoldoutRules) -> str:
    if clusters >= rules.least_clusters:
        return ""
    return f", so that the gate has {rules.least_documents}, from {rules.least_clusters} clusters"
