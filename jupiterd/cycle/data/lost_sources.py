"""Sources of which nothing could be collected in a round, and what stands in their place.

Owns what is kept of such a source, and the words in which people are told of it. Doesn't know how
often anybody tried, or where.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.protocol.frames import Scalar

MAX_REASON_CHARACTERS = 300

_RETAINED_COUNTS = (
    "documents", "bytes", "clusters", "holdout_documents", "holdout_bytes", "holdout_clusters",
)  # fmt: skip

_SOURCE, _REASON, _PLACE = "lost_source", "lost_reason", "lost_part"


@dataclass(frozen=True)
class Lost:
    """A source, or a part of one, that couldn't be had in a round."""

    source: str
    """Its name in the domain file."""
    reason: str
    has_text: bool = False
    """What was collected in rounds before is used."""
    place: str = ""
    """Which part it is, such as `2 of 3`; empty: all of it."""

    @property
    def failure(self) -> str:
        """Return what happened, for people."""
        return f"source {named_part(self.source, self.place)} failed: {self.reason}"

    def text(self) -> str:
        """Return what happened and what follows from it, for people."""
        used = "what was collected of it before is used" if self.has_text else "there is none of it"
        return f"{self.failure}; {used}, the next round tries it anew"


def named_part(source: str, place: str) -> str:
    """Return what people know a source by, or a part of it."""
    return f"{source} (part {place})" if place else source


def in_place_of(source: str, reason: str, before: WorkResult | None, place: str = "") -> WorkResult:
    """Return what counts as collected: what the round before has, or nothing.

    Args:
        source: its name in the domain file.
        reason: why nothing could be collected.
        before: what the round before counts as collected; None in the first round.
        place: which part of the source it is; empty: all of it.
    """
    line = (reason.splitlines() or [""])[0][:MAX_REASON_CHARACTERS]
    outputs = {} if before is None else before.outputs
    counts = {} if before is None else before.counts
    return WorkResult(
        # `skipped` is of the round that looked.
        {name: artifact for name, artifact in outputs.items() if name != "skipped"},
        {name: counts[name] for name in _RETAINED_COUNTS if name in counts},
        {_SOURCE: source, _REASON: line, **({_PLACE: place} if place else {})},
    )


def is_enough(collected: Iterable[WorkResult]) -> bool:
    """Say whether a round can go on with this alone: there is text, and some to judge by.

    How much of it is held out is known beforehand only in cycles that hold out as they read.
    """
    found = [result.counts for result in collected]
    is_parted = any("holdout_documents" in counts for counts in found)
    names = ("documents", "holdout_documents") if is_parted else ("documents",)
    return all(any(counts.get(name, 0) for counts in found) for name in names)


def lost_among(done: Iterable[tuple[Mapping[str, Scalar], Mapping[str, float]]]) -> Sequence[Lost]:
    """Return which sources couldn't be had, of the summaries and counts of collecting."""
    return [
        Lost(
            str(summary[_SOURCE]),
            str(summary[_REASON]),
            bool(counts.get("documents")),
            str(summary.get(_PLACE, "")),
        )
        for summary, counts in done
        if _SOURCE in summary
    ]
