"""Giving up what nobody needs on this node, so that disks don't fill for ever.

That is old checkpoints, what no fact names, fetches that were broken off, and old curves.

Owns the pace and the grace. Doesn't know which are needed (`cluster.retention`, `old_curves`), or
how one goes.
"""

import asyncio
import logging
from pathlib import Path

from jupiterd.cluster.retention import strays, unneeded
from jupiterd.daemon.clock import now_s, wall_s
from jupiterd.daemon.journal import Journal
from jupiterd.daemon.old_curves import remove_old
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, short
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)

PERIOD_S = 60.0
STRAYS_PERIOD_S = 3600.0
STRAY_S = 86_400.0
"""Between the last use of something that no fact names and its end."""

GRACE_S = 600.0
"""Between the moment when nobody needs one any more and its end: whoever still reads it is done."""


class Retention:
    """Removes what has been unneeded for the whole grace."""

    def __init__(self, journal: Journal, store: ArtifactStore, curves: Path) -> None:
        """Take what is agreed on, and what goes by it."""
        self._journal = journal
        self._curves = curves
        self._store = store
        self._since_s: dict[ArtifactId, float] = {}
        self._strays: frozenset[ArtifactId] = frozenset()

    async def run(self) -> None:
        """Look once a minute."""
        strays_at_s = now_s() + STRAYS_PERIOD_S
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look(now_s())
            await self.look_at_curves()
            if now_s() >= strays_at_s:
                strays_at_s = now_s() + STRAYS_PERIOD_S
                await self.look_at_strays(wall_s())

    async def look(self, at_s: float) -> None:
        """Remove what was unneeded at every look for as long as the grace."""
        found = unneeded(self._journal.state.cycles.values())
        self._since_s = {each: self._since_s.get(each, at_s) for each in found}
        for artifact, since_s in list(self._since_s.items()):
            if at_s - since_s >= GRACE_S and self._store.holds(artifact):
                await self._remove(artifact)

    async def look_at_strays(self, at_s: float) -> None:
        """Remove what no fact names, nor did at the last look, unused for a day; `at_s`: wall time.

        Nothing goes while this node is in no cluster that has ever worked: its ledger may be the
        wrong one. What was fetched in part and isn't any more goes after the same time.
        """
        await asyncio.to_thread(self._store.remove_partial, at_s - STRAY_S)
        state = self._journal.state
        if not state.has_worked:
            return
        held = await asyncio.to_thread(self._store.unused_since, at_s - STRAY_S)
        found = strays(held, (fact for _, fact in state.placed()))
        for artifact in found & self._strays:
            await self._remove(artifact)
        self._strays = found

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
            log.warning("artifact_not_removed", extra={"reason": error.message})
            return
        log.info("artifact_removed", extra={"artifact": short(artifact)})
