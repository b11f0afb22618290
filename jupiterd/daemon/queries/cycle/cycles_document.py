"""The document of `jupiterctl cycle list`: every cycle that the ledger knows, the newest first.

Owns its keys. Doesn't know how a cycle's own document comes about.
"""

from operator import attrgetter
from typing import Any

from jupiterd.daemon.queries.cluster.status_document import shown
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.document_schema import SCHEMA

VERDICT_TEXTS = ("id", "domain", "state", "rounds", "round", "phase", "val_bpb", "model", "paused")
"""What a row has of a cycle's own document."""

VERDICTS_SHOWN = ("round", "verdict", "candidate", "val_bpb", "reason")

OWN_SHARE = "self_hosting"
"""In a cycle's document: the share of the synthetic text that its own student writes, 0 to 1."""


def cycles_document(sources: DocumentSources) -> dict[str, Any]:
    """Return a row for each cycle."""
    cycles = [each for each in sources.replica.state.cycles.values() if each.started is not None]
    newest_first = sorted(cycles, key=attrgetter("start_order"), reverse=True)
    return {"schema": SCHEMA, "cycles": [_row(shown(sources, cycle)) for cycle in newest_first]}


def _row(cycle: dict[str, Any]) -> dict[str, Any]:
    verdicts = cycle["verdicts"]
    return {
        **{name: cycle[name] for name in VERDICT_TEXTS},
        "rounds_done": len(verdicts),
        "verdict": verdicts[-1]["verdict"] if verdicts else None,
        "verdicts": [{name: each[name] for name in VERDICTS_SHOWN} for each in verdicts],
        OWN_SHARE: cycle.get(OWN_SHARE),
    }
