"""The data of rounds, as `data list` shows it: the same whichever node is asked.

Owns its keys. What is in the shards is read where they lie, here or elsewhere.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.base.contents_file import CONTENTS_FILE, MAX_CONTENTS_BYTES
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.ids import ArtifactId

MAX_ROUNDS = 100
"""The newest ones; so that a list stays a list."""

READ_AT_ONCE = 8
READ_TIMEOUT_S = 4.0
"""Of all together; who asks for a list doesn't wait for a node that is slow."""

_COUNTS = ("tokens", "sequences", "documents", "synthetic_documents", "bytes")


async def round_rows(state: State, artifact_cache: ArtifactCache) -> list[dict[str, Any]]:
    """Return the data of each round of each cycle, that of the newest first."""
    runs = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    rows = (row for run in runs if run.started is not None for row in _of_run(run, artifact_cache))
    newest = [row for row, _ in zip(rows, range(MAX_ROUNDS), strict=False)]
    reading = _Reading(artifact_cache)
    contents = await asyncio.gather(*(reading.contents(row["shards"]) for row in newest))
    return [{**row, "contents": each} for row, each in zip(newest, contents, strict=True)]


def _of_run(run: CycleState, artifact_cache: ArtifactCache) -> Iterator[dict[str, Any]]:
    packed = (fact for fact in run.completed.values() if fact.phase == Phase.PACK)
    for fact in sorted(packed, key=attrgetter("round"), reverse=True):
        shards = fact.outputs["shards"]
        yield {
            "run": fact.cycle,
            "name": run.label,
            "round": fact.round,
            "shards": shards,
            "made_by": fact.node,
            "held_here": artifact_cache.store.holds(shards),
            **{name: whole_count(fact.counts, name) for name in _COUNTS if name in fact.counts},
        }


class _Reading:
    """Reads what the files say, some at a time, until time is up."""

    def __init__(self, artifact_cache: ArtifactCache) -> None:
        self._artifact_cache = artifact_cache
        self._turns = asyncio.Semaphore(READ_AT_ONCE)
        self._end_s = asyncio.get_running_loop().time() + READ_TIMEOUT_S

    async def contents(self, shards: ArtifactId) -> dict[str, Any] | None:
        """Return what the file says; None where there is none in reach that can be used."""
        data: bytes | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._end_s), self._turns:
                data = await self._artifact_cache.read(shards, CONTENTS_FILE, MAX_CONTENTS_BYTES)
        try:
            found = None if data is None else json.loads(data)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None
