"""Giving up old checkpoints and curves on this node, so that disks don't fill for ever.

Owns the pace and the grace. Doesn't know which are needed (`cluster.retention`, `old_curves`), or
how one goes.
"""

import asyncio
import logging
from pathlib import Path

from jupiterd.cluster.retention import unneeded
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.journal import Journal
from jupiterd.daemon.old_curves import remove_old
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, short
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)

PERIOD_S = 60.0
GRACE_S = 600.0
"""Between the moment when nobody needs one any more and its end: whoever still reads it is done."""


class Retention:
    """Removes what has been unneeded for the whole grace."""

    def __init__(self, journal: Journal, store: ArtifactStore, curves: Path) -> None:
        self._journal = journal
        self._curves = curves
        self._store = store
        self._since_s: dict[ArtifactId, float] = {}

    async def run(self) -> None:
        """Look once a minute."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look(now_s())
            await self.look_at_curves()

    async def look(self, at_s: float) -> None:
        """Remove what was unneeded at every look for as long as the grace."""
        found = unneeded(self._journal.state.cycles.values())
        self._since_s = {each: self._since_s.get(each, at_s) for each in found}
        for artifact, since_s in list(self._since_s.items()):
            if at_s - since_s >= GRACE_S and self._store.holds(artifact):
                await self._remove(artifact)

    async def look_at_curves(self) -> None:
        """Remove those of runs that are over, but for the newest."""
        cycles = self._journal.state.cycles.items()
        running = {short(cycle) for cycle, state in cycles if not state.finished}
        if gone := await asyncio.to_thread(remove_old, self._curves, running):
            log.info("curves_removed", extra={"runs": ",".join(gone)})

    async def _remove(self, artifact: ArtifactId) -> None:
        try:
            await asyncio.to_thread(self._store.remove, artifact)
        except JupiterError as error:
            log.warning("checkpoint_not_removed", extra={"reason": error.message})
            return
        log.info("checkpoint_removed", extra={"artifact": short(artifact)})
