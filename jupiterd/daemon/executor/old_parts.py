"""Parts of checkpoints that ranks of this node have written: they go once nobody needs them.

Owns that rule: no fact names a part, and some are written in each minute. Doesn't know what becomes
of them (`daemon.leader.checkpoint_parts`). However long it takes to fetch them, they stay until
their step is recorded, or their attempt is closed: its last set is recorded, or given up, with it.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.training.partition.partition import PARAM
from jupiterd.daemon.runtime.work_events import CheckpointStored, WorkOrder
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Part:
    order: WorkOrder
    """Of the rank that has written it."""
    step: int
    artifact: ArtifactId


class OldParts:
    """Those of all workers of this node since it was started."""

    def __init__(self, store: ArtifactStore, state: Callable[[], State]) -> None:
        self._store, self._state = store, state
        self._kept: list[_Part] = []

    @property
    def kept(self) -> frozenset[ArtifactId]:
        """Return those that may still be needed."""
        return frozenset(part.artifact for part in self._kept)

    async def stored(self, order: WorkOrder, made: CheckpointStored) -> None:
        """Take in what a worker has written, and give up what is needed no more."""
        if order.params.get(PARAM):
            self._kept.append(_Part(order, made.progress.step, made.artifact))
            await self.look()

    async def look(self) -> None:
        """Give up what the ledger has by now, and what is left of attempts that are closed."""
        if not self._kept:
            return
        old = [part for part in self._kept if self._is_old(part)]
        self._kept = [part for part in self._kept if part not in old]
        for part in old:
            try:
                await asyncio.to_thread(self._store.remove, part.artifact)
            except JupiterError as error:  # it goes with what nobody needs (`retention`)
                log.warning("part_not_removed", extra={"reason": error.message})

    def _is_old(self, part: _Part) -> bool:
        cycles = self._state().cycles.items()
        ours = [cycle for name, cycle in cycles if name.startswith(part.order.cycle)]
        return any(_has(cycle, part) for cycle in ours)


def _has(cycle: CycleState, part: _Part) -> bool:
    """Say whether a checkpoint of a part's step or a later one is recorded, or none will be."""
    of_island = "island" in part.order.params  # whose run has one round, whatever its data is of
    last = cycle.last_checkpoint(1 if of_island else int(part.order.params["round"]))
    is_recorded = last is not None and part.step <= last.step
    return is_recorded or part.order.attempt in cycle.attempts_closed
