"""What went into a phase, what came out of it, and what was left out on the way and why.

Pure. Owns which counts of a phase's items say so. Doesn't know how the counts came about, or how
they are shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jupiterd.cycle.base.work_item import Phase


@dataclass(frozen=True)
class Flow:
    """Pieces of text, or what a phase makes of them; None: nobody has counted that."""

    into: int | None = None
    out: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Reason -> how many; the commonest first."""

    def to_plain(self) -> dict[str, Any]:
        """Return it as documents carry it."""
        return {"in": self.into, "out": self.out, "dropped": dict(self.dropped)}


def flow_of(phase: Phase, counts: Mapping[str, float]) -> Flow:
    """Return what a phase's items have counted together.

    counts: the sums over its finished items, as `phase_summary.total_counts` makes them
    """
    if phase is Phase.COLLECT and not counts.keys().isdisjoint(("train_documents", "dropped")):
        return _parted(counts)
    into, out, prefix = _NAMES.get(phase, ((), (), ""))
    return Flow(_sum(counts, into), _sum(counts, out), _reasons(counts, (prefix,)))


def _parted(counts: Mapping[str, float]) -> Flow:
    """Return the flow of text that was read, cleaned and parted: what was left out of it, too.

    Before it is parted, or where it can't be, what came through the cleaning has come out.
    """
    clean = int(counts.get("documents", 0) - counts.get("dropped", 0))
    return Flow(
        _sum(counts, ("documents", "skipped")),
        _sum(counts, ("train_documents", "holdout_documents"))
        if "train_documents" in counts
        else max(clean, 0),
        _reasons(counts, ("skipped.", "dropped.")),
    )


_NAMES: Mapping[Phase, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    Phase.COLLECT: (
        ("documents", "holdout_documents", "skipped"),
        ("documents", "holdout_documents"),
        "skipped.",
    ),
    Phase.GENERATE: (("prompts",), ("samples",), "refused."),
    Phase.FILTER: (("kept", "dropped"), ("kept",), "dropped."),
    Phase.PACK: (("documents",), ("sequences",), ""),
    Phase.EVALUATE: (("documents",), ("scores",), ""),
    Phase.GATE: (("documents",), (), ""),
}
"""Phase -> the counts that add up to what went in, to what came out, and how reasons begin."""


def _sum(counts: Mapping[str, float], names: tuple[str, ...]) -> int | None:
    found = [counts[name] for name in names if name in counts]
    return int(sum(found)) if found else None


def _reasons(counts: Mapping[str, float], prefixes: tuple[str, ...]) -> dict[str, int]:
    found = [
        (name.removeprefix(prefix), int(count))
        for prefix in prefixes
        for name, count in counts.items()
        if prefix and name.startswith(prefix) and count
    ]
    return dict(sorted(found, key=lambda pair: (-pair[1], pair[0])))
