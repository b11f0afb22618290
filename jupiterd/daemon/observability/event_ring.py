"""What this daemon has seen happen in its cluster, with the time of day.

Owns the ring, its bounds and its document. Doesn't know what counts as an event (`status_diff`).
The ledger has no times: what happened while this daemon was away, others have seen.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from jupiterd.cluster.health.status_diff import status_changes
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.daemon.queries.cluster.health_document import alert_lines
from jupiterd.daemon.queries.cluster.status_document import shown as run_document
from jupiterd.daemon.queries.cluster.status_document import status_document
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.document_schema import SCHEMA
from jupiterd.ids import CycleId

LOOK_S: Final = 2.0
MAX_EVENTS: Final = 500
MAX_TEXT_CHARACTERS: Final = 300


class EventFile:
    """The latest events in the state folder, so that they outlive their daemon.

    Nothing depends on it: a file that can't be read or written costs the events of before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[str, list[dict[str, Any]]]:
        """Return (time of the first look, events from the oldest); ("", []) if there is no file."""
        try:
            document: Mapping[str, Any] = json.loads(self._path.read_text())
            rows = [dict(row) for row in document["events"]]
            since = str(document["since"])
            return since, sorted(rows, key=lambda row: int(row["seq"]))
        except (OSError, ValueError, TypeError, KeyError):
            return "", []

    def save(self, document: Mapping[str, Any]) -> None:
        """Replace the file in one step: it holds all of the new document or all of the old one."""
        draft = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(document))
            draft.replace(self._path)


class EventRing:
    """The latest events."""

    def __init__(self, file: Path, sources: DocumentSources) -> None:
        self._sources = sources
        self._file = EventFile(file)
        since, rows = self._file.load()
        self._since = since or wall_iso()
        self._seen: Mapping[str, Any] = {}
        self._rows: deque[dict[str, Any]] = deque(rows, maxlen=MAX_EVENTS)
        self._seq = self._saved_seq = int(rows[-1]["seq"]) if rows else 0
        self._went_on: AbstractSet[CycleId] = frozenset()
        """The runs that went on at the last look."""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            await asyncio.to_thread(self.save)
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Take note of what has happened since the last look."""
        status = status_document(self._sources)
        seen = {**status, "alerts": alert_lines(self._sources), **self._runs(status)}
        for event in status_changes(self._seen, seen):
            self._seq += 1
            self._rows.append(
                {
                    "seq": self._seq,
                    "at": wall_iso(),
                    "level": str(event.level),
                    "code": event.code,
                    "text": event.text[:MAX_TEXT_CHARACTERS],
                    "node": event.node or None,
                    "cycle": event.cycle or None,
                }
            )
        self._seen = seen

    def save(self) -> None:
        """Write down what is new since that was done last: it outlives this daemon."""
        if self._seq != self._saved_seq:
            self._saved_seq = self._seq
            self._file.save(self.document())

    def _runs(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the runs that are shown, that go on, or went on when they were looked at last."""
        cycles = self._sources.replica.state.cycles
        known = {run: each for run, each in cycles.items() if _is_of_people(each)}
        goes_on = {run for run, each in known.items() if each.goes_on}
        shown = {row["id"]: row for row in (status["cycle"], status["train"]) if row}
        more = {run for run in goes_on | self._went_on if run in known and run not in shown}
        self._went_on = goes_on
        runs = {**shown, **{run: run_document(self._sources, known[run]) for run in sorted(more)}}
        return {"runs": runs, "known_runs": frozenset(known)}

    def document(self) -> dict[str, Any]:
        """Return the events, the oldest first; `since` says when anybody began to look here."""
        return {"schema": SCHEMA, "since": self._since, "events": list(self._rows)}


def _is_of_people(run: CycleState) -> bool:
    """Say whether a person started it: a cycle, or a training run that is no island."""
    return run.started is not None or (run.training is not None and is_whole(run))
