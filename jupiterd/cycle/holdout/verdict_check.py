"""Whether text allows a verdict, and what gain that would show: asked before anything is trained.

Owns that check, of text that was collected or foretold, and its sentences. Doesn't know how text is
read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.data.split import DEV, GATE
from jupiterd.cycle.gate.power import POWER
from jupiterd.cycle.holdout.clusters import effective_clusters
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules, least_documents
from jupiterd.cycle.holdout.paired_spread import FIRST, LATER, Comparison, detectable_bpb
from jupiterd.errors import TooLittleTextError
from jupiterd.formats import counted

SHOWN_REASONS: Final = 2

BYTES_OF_TOKEN: Final = 4
"""Of most text; only for people to read."""

WHAT_HELPS: Final = "add text, or start with --without-verdict"
"""Where there is too little of it."""

NO_GAIN_BPB: Final = 1.0
"""No round brings as much over the student before; a bound beyond it promises nothing."""


@dataclass(frozen=True)
class Found:
    """What was collected and what is held out of it."""

    documents: int = 0
    size_bytes: int = 0
    gate_documents: int = 0
    """Those that are scored."""
    gate_clusters: int = 0
    effective_clusters: float = 0.0
    """Of the gate's, see `clusters`."""
    dev_documents: int = 0
    held_out: int = 0
    """For whatever part."""

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
        held = list(held_out)
        long = [each for each in held if each[2] >= rules.min_document_bytes]
        sizes = Counter(cluster for part, cluster, _ in long if part == GATE)
        scored = [min(size, rules.max_cluster_documents) for size in sizes.values()]
        return cls(
            documents,
            size_bytes,
            sum(scored),
            len(scored),
            effective_clusters(scored, rules.max_cluster_documents),
            sum(part == DEV for part, _, _ in long),
            len(held),
        )

    def summary(self, rules: HoldoutRules, comparison: Comparison = FIRST) -> str:
        """Return what is held out and what it can show, in one sentence.

        comparison: that of the round which is to be judged
        """
        beginning = (
            f"{counted(self.gate_documents, 'document')} of "
            f"{counted(self.gate_clusters, 'cluster')} for the gate, "
            f"{self.dev_documents:,} for development"
        )
        if self.effective_clusters < 2 or not self.is_enough(rules):
            return f"{beginning}; too few for a verdict"
        return f"{beginning}; {self.promise(rules, comparison)}"

    def promise(self, rules: HoldoutRules, comparison: Comparison = FIRST) -> str:
        """Return the gain that this text would show, in round 1 also what it would show later."""
        seen = f"it shows, with a chance of {POWER:.0%}, a gain from about"
        gain = f"{seen} {self.detectable_bpb(rules, comparison):.2g} bits per byte"
        measured = ", as the last verdict measured" if comparison.standard_error_bpb else ""
        if comparison.beside_student and not comparison.is_brought:
            return f"{gain} over the student before{measured}"
        when = "in round 1" if comparison.look == 1 else "now"
        over = "the model that was brought" if comparison.is_brought else "counting"
        least = self.detectable_bpb(rules, LATER)
        later = f"from {least:.2g}" if least < NO_GAIN_BPB else "hardly any"
        return (
            f"{gain} {when} (over {over}{measured}) and {later} in later rounds (over the "
            "student before)"
        )

    def detectable_bpb(self, rules: HoldoutRules, comparison: Comparison) -> float:
        """Return the smallest true gain that is shown with a chance of 80 %."""
        return detectable_bpb(self.gate_documents, self.effective_clusters, rules, comparison)

    def is_enough(self, rules: HoldoutRules) -> bool:
        """Say whether a verdict is possible."""
        return (
            self.gate_documents >= rules.least_documents
            and self.gate_clusters >= rules.least_clusters
        )

    def needed(self, rules: HoldoutRules) -> str:
        """Return what a verdict needs, where this isn't enough for one."""
        least = least_documents(rules)
        if self.documents < least:
            return f"a verdict needs at least {least:,}"
        return (
            f"a verdict needs {rules.least_documents:,} documents from "
            f"{rules.least_clusters:,} clusters for the gate, and it would have "
            f"{self.gate_documents:,} from {self.gate_clusters:,}"
        )


def check_verdict(found: Found, rules: HoldoutRules, left_out: Mapping[str, int]) -> None:
    """Raise TooLittleTextError where no verdict is possible.

    left_out: reason -> documents that cleaning left out, which may be the cause
    """
    if found.is_enough(rules):
        return
    tokens = found.size_bytes // BYTES_OF_TOKEN
    raise TooLittleTextError(
        f"{counted(found.documents, 'document')}, about {tokens:,} tokens; "
        f"{found.needed(rules)}{_cause(left_out)}",
        WHAT_HELPS,
    )


def _cause(left_out: Mapping[str, int]) -> str:
    """Return what cleaning left out, and its first reasons."""
    if not (total := sum(left_out.values())):
        return ""
    first = sorted(left_out.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN_REASONS]
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in first)
    return f" ({total:,} more were left out: {reasons})"
