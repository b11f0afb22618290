"""The latest events in the state folder, so that they outlive their daemon.

Owns the file. Doesn't know what an event is. Nothing depends on it: one that can't be read, or not
be written, costs the events of before and nothing else.
"""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class EventFile:
    """Where the events of one daemon are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[str, list[dict[str, Any]]]:
        """Return since when there were any, and the events, the oldest first; else nothing."""
        try:
            document: Mapping[str, Any] = json.loads(self._path.read_text())
            rows = [dict(row) for row in document["events"]]
            since = str(document["since"])
            return since, sorted(rows, key=lambda row: int(row["seq"]))
        except (OSError, ValueError, TypeError, KeyError):
            return "", []

    def save(self, document: Mapping[str, Any]) -> None:
        """Write them down; they are complete in it, or those of before are."""
        draft = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(document))
            draft.replace(self._path)
