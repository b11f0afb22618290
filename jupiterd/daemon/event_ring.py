"""What this daemon has seen happen in its cluster, with the time of day.

Owns the ring, its bounds and its document. Doesn't know what counts as an event (`noticed`). The
ledger has no times: what happened while this daemon was away, others have seen.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cluster.noticed import noticed
from jupiterd.daemon.clock import wall_iso
from jupiterd.daemon.health_document import alert_lines
from jupiterd.daemon.status_document import status_document
from jupiterd.document_schema import SCHEMA

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

LOOK_S: Final = 2.0
MAX_EVENTS: Final = 500
MAX_TEXT_CHARACTERS: Final = 300


class EventRing:
    """The latest events."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._since = wall_iso()
        self._seen: Mapping[str, Any] = {}
        self._rows: deque[dict[str, Any]] = deque(maxlen=MAX_EVENTS)
        self._seq = 0

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Take note of what has happened since the last look."""
        seen = {**status_document(self._node), "alerts": alert_lines(self._node)}
        for event in noticed(self._seen, seen):
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

    def document(self) -> dict[str, Any]:
        """Return the events, the oldest first; `since` says when this daemon began to look."""
        return {"schema": SCHEMA, "since": self._since, "events": list(self._rows)}
