"""The data of rounds, as `data list` shows it.

Owns its keys. What is in the shards is read where they lie on this node.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.state import State
from jupiterd.cycle.contents_file import CONTENTS_FILE, MAX_CONTENTS_BYTES
from jupiterd.cycle.work import Phase
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore

MAX_ROUNDS = 100
"""The newest ones; so that a list stays a list."""

_COUNTS = ("tokens", "sequences", "documents", "synthetic_documents", "bytes")


def round_rows(state: State, store: ArtifactStore) -> list[dict[str, Any]]:
    """Return the data of each round of each cycle, that of the newest first."""
    runs = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    rows = (row for run in runs if run.started is not None for row in _of_run(run, store))
    return [row for row, _ in zip(rows, range(MAX_ROUNDS), strict=False)]


def _of_run(run: CycleState, store: ArtifactStore) -> Iterator[dict[str, Any]]:
    packed = (fact for fact in run.completed.values() if fact.phase == Phase.PACK)
    for fact in sorted(packed, key=attrgetter("round"), reverse=True):
        shards = fact.outputs["shards"]
        is_here = store.holds(shards)
        yield {
            "run": fact.cycle,
            "name": run.label,
            "round": fact.round,
            "shards": shards,
            "made_by": fact.node,
            "held_here": is_here,
            **{name: int(fact.counts[name]) for name in _COUNTS if name in fact.counts},
            "contents": _contents(store, shards) if is_here else None,
        }


def _contents(store: ArtifactStore, shards: ArtifactId) -> dict[str, Any] | None:
    return _read(store.path(shards) / CONTENTS_FILE)


@lru_cache(maxsize=MAX_ROUNDS)
def _read(path: Path) -> dict[str, Any] | None:
    """Return what the file says, which never changes; None where there is none that can be used."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_CONTENTS_BYTES))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
