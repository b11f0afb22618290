"""Parts of checkpoints that a rank of this node has written: they go once they are recorded.

Owns that rule: no fact names a part, and some are written in each minute. Doesn't know what becomes
of them (`daemon.leader.checkpoint_parts`). However long it takes to fetch them, they stay until
then: a leader that is slower than ranks write takes the newest next.
"""

import asyncio
from collections.abc import Callable

from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.training.partition.partition import PARAM
from jupiterd.daemon.runtime.work_events import CheckpointStored, WorkOrder
from jupiterd.store.artifacts import ArtifactStore


class OldParts:
    """Those of one worker."""

    def __init__(self, store: ArtifactStore, order: WorkOrder, state: Callable[[], State]) -> None:
        self._store, self._order, self._state = store, order, state
        self._writes_parts = bool(order.params.get(PARAM))
        self._kept: list[CheckpointStored] = []

    async def stored(self, part: CheckpointStored) -> None:
        """Take in what a worker has written, and give up what the ledger has by now."""
        if not self._writes_parts:
            return
        recorded = self._recorded_step()
        old = [each for each in self._kept if each.progress.step <= recorded]
        self._kept = [*(each for each in self._kept if each.progress.step > recorded), part]
        for each in old:
            await asyncio.to_thread(self._store.remove, each.artifact)

    def _recorded_step(self) -> int:
        """Return the last step of which a checkpoint is recorded; 0: of none."""
        cycles = self._state().cycles.items()
        ours = [cycle for name, cycle in cycles if name.startswith(self._order.cycle)]
        found = [cycle.last_checkpoint(int(self._order.params["round"])) for cycle in ours]
        return max((last.step for last in found if last is not None), default=0)
