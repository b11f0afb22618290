"""Parts of checkpoints that a rank of this node has written: none stays once two later ones exist.

Owns that rule: no fact names a part, and some are written in each minute. Doesn't know what becomes
of them (`daemon.leader.checkpoint_parts`).
"""

import asyncio
from collections import deque

from jupiterd.cycle.training.partition.partition import PARAM
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore

NEWEST = 2
"""Parts that stay: one may be fetched while the next is written."""


class OldParts:
    """Those of one worker."""

    def __init__(self, store: ArtifactStore, order: WorkOrder) -> None:
        self._store = store
        self._writes_parts = bool(order.params.get(PARAM))
        self._kept = deque[ArtifactId]()

    async def stored(self, artifact: ArtifactId) -> None:
        """Take in what a worker has written, and give up what that makes old."""
        if not self._writes_parts:
            return
        self._kept.append(artifact)
        while len(self._kept) > NEWEST:
            await asyncio.to_thread(self._store.remove, self._kept.popleft())
