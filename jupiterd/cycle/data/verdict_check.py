"""Whether the text that was collected allows a verdict: asked once, before anything is trained.

Owns that check, and the sentence that ends a cycle. Doesn't know how text is read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jupiterd.cycle.data.clusters import effective_clusters
from jupiterd.cycle.data.holdout_outlook import (
    BYTES_OF_TOKEN,
    WHAT_HELPS,
    detectable_bpb,
    least_documents,
)
from jupiterd.cycle.data.holdout_rules import HoldoutRules
from jupiterd.cycle.gate.power import POWER
from jupiterd.cycle.split import DEV, GATE
from jupiterd.errors import TooLittleTextError
from jupiterd.formats import counted

SHOWN_REASONS = 2


@dataclass(frozen=True)
class Found:
    """What was collected and what is held out of it."""

    documents: int
    size_bytes: int
    gate_documents: int
    """Those that are scored."""
    gate_clusters: int
    effective_clusters: float
    """Of the gate's, see `clusters`."""
    dev_documents: int

    @classmethod
    def of(
        cls,
        held_out: Iterable[tuple[str, str, int]],
        documents: int,
        size_bytes: int,
        rules: HoldoutRules,
    ) -> "Found":
        """Count what can be scored.

        Args:
            held_out: part, cluster and bytes of each document.
            documents: that were collected and are clean.
            size_bytes: of them.
            rules: the domain's.
        """
        long = [each for each in held_out if each[2] >= rules.min_document_bytes]
        sizes = Counter(cluster for part, cluster, _ in long if part == GATE)
        scored = [min(size, rules.max_cluster_documents) for size in sizes.values()]
        return cls(
            documents,
            size_bytes,
            sum(scored),
            len(scored),
            effective_clusters(scored, rules.max_cluster_documents),
            sum(part == DEV for part, _, _ in long),
        )

    def told(self, rules: HoldoutRules) -> str:
        """Return what is held out and what it can show, in one sentence."""
        beginning = (
            f"{self.gate_documents:,} documents of {self.gate_clusters:,} clusters for the gate, "
            f"{self.dev_documents:,} for development"
        )
        if self.effective_clusters < 2 or not self.is_enough(rules):
            return f"{beginning}; too few for a verdict"
        seen = detectable_bpb(self.gate_documents, self.effective_clusters, rules)
        return (
            f"{beginning}; a gain of about {seen:.3f} bits per byte would be seen with a chance "
            f"of {POWER:.0%}"
        )

    def is_enough(self, rules: HoldoutRules) -> bool:
        """Say whether a verdict is possible."""
        return (
            self.gate_documents >= rules.least_documents
            and self.gate_clusters >= rules.least_clusters
        )


def check_verdict(found: Found, rules: HoldoutRules, left_out: Mapping[str, int]) -> None:
    """Raise TooLittleTextError where no verdict is possible.

    left_out: reason -> documents that cleaning left out, which may be the cause
    """
    if found.is_enough(rules):
        return
    tokens = found.size_bytes // BYTES_OF_TOKEN
    least = least_documents(rules)
    needed = (
        f"a verdict needs at least {least:,}"
        if found.documents < least
        else f"a verdict needs {rules.least_documents:,} of {rules.least_clusters:,} clusters for "
        f"the gate, which has {found.gate_documents:,} of {found.gate_clusters:,}"
    )
    raise TooLittleTextError(
        f"{counted(found.documents, 'document')}, about {tokens:,} tokens; "
        f"{needed}{_cause(left_out)}",
        WHAT_HELPS,
    )


def _cause(left_out: Mapping[str, int]) -> str:
    """Return what cleaning left out, and its first reasons."""
    if not (total := sum(left_out.values())):
        return ""
    first = sorted(left_out.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN_REASONS]
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in first)
    return f" ({total:,} more were left out: {reasons})"
