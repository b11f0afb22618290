"""Giving up what nobody needs on this node, so that disks don't fill for ever.

That is old checkpoints and parts of them, old pseudo-gradients of islands, intermediate artifacts
of the shards of old rounds, what no fact names, fetches that were broken off, old curves, and what
workers left that nobody came back for.

Owns the pace and the grace. Doesn't know which are needed (`cluster.retention`,
`cluster.old_rounds`, `curve_retention`), or how one goes.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from jupiterd.cluster.artifacts.old_rounds import outlived
from jupiterd.cluster.artifacts.retention import old_pseudo_gradients, strays, unneeded
from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.artifacts.curve_retention import remove_old
from jupiterd.daemon.artifacts.disk_pressure import DiskPressure
from jupiterd.daemon.artifacts.scratch_dirs import remove_stale
from jupiterd.daemon.artifacts.shipped_folders import ShippedFolders
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.runtime.clock import now_s, wall_s
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, short
from jupiterd.protocol.checkpoint_part import DATA_FILE, DESCRIPTION_FILE
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)

PERIOD_S = 60.0
STRAYS_PERIOD_S = 3600.0
STRAY_S = 86_400.0
"""Between the last use of something that no fact names and its end."""

STRAY_PART_S = 3600.0
"""The same of a part of a checkpoint: a rank may write one in each minute."""

GRACE_S = 600.0
"""Between the moment when nobody needs one any more and its end: whoever still reads it is done."""

PSEUDO_GRADIENT_GRACE_S = 60.0
"""The same of a pseudo-gradient, which nobody reads for long: ten minutes may bring hundreds.
"""


class Retention:
    """Removes what has been unneeded for the whole grace."""

    def __init__(
        self,
        replica: Replica,
        store: ArtifactStore,
        state_dir: StateDir,
        rounds_kept: int = 2,
        little_room: DiskPressure | None = None,
        shipped: ShippedFolders | None = None,
    ) -> None:
        """Take what is agreed on, what goes by it, and how many rounds of a cycle stay whole."""
        self.kept_parts: Callable[[], AbstractSet[ArtifactId]] = frozenset
        """Returns the parts of checkpoints that may still be put together."""
        self._shipped = shipped
        self._little_room = little_room
        self._replica = replica
        self._rounds_kept = rounds_kept
        self._state_dir = state_dir
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
                await self.look_at_scratch()
                await self.look_at_shipped(wall_s())
                if self._little_room is not None:
                    await self._little_room.look(wall_s())

    async def look(self, at_s: float) -> None:
        """Remove what is here and was unneeded at every look for as long as the grace.

        What was removed and is stored again waits as long: the fact that names it may still come.
        """
        old = self._replica.derived(_old_pseudo_gradients)
        found = self._unneeded() | old
        present = await asyncio.to_thread(lambda: [*filter(self._store.holds, found)])
        self._since_s = {each: self._since_s.get(each, at_s) for each in present}
        for artifact, since_s in list(self._since_s.items()):
            grace_s = PSEUDO_GRADIENT_GRACE_S if artifact in old else GRACE_S
            if at_s - since_s >= grace_s:
                await self._remove(artifact, wall_s() - grace_s)

    async def look_at_strays(self, at_s: float) -> None:
        """Remove what no fact names, nor did at the last look, unused for a day; `at_s`: wall time.

        Nothing goes while this node is in no cluster that has ever worked: its ledger may be the
        wrong one. What was fetched in part and isn't any more goes after the same time.
        """
        before_s = at_s - STRAY_S
        await self._remove_partial(before_s)
        if not self._replica.state.has_worked:
            return
        await self._remove_parts(at_s - STRAY_PART_S)
        unused = await asyncio.to_thread(self._store.unused_since, before_s)
        version = self._replica.version
        found = await self._unnamed(unused)
        for artifact in found & self._strays:
            if self._replica.version != version:
                version, found = self._replica.version, await self._unnamed(found)
            if artifact in found:
                await self._remove(artifact, before_s)
        self._strays = found

    async def _remove_parts(self, before_s: float) -> None:
        """Remove parts of checkpoints whose ranks ended with the daemon, and what was fetched."""
        found = await asyncio.to_thread(_parts_in, self._store, before_s)
        for part in await self._unnamed(frozenset(found) - self.kept_parts()):
            await self._remove(part, before_s)

    async def _remove_partial(self, before_s: float) -> None:
        """Remove fetches that were broken off, of what isn't named or isn't needed any more.

        What is named may have been set aside to be mended when this node went down.
        """
        partial = await asyncio.to_thread(self._store.partial_ids)
        going = (
            await self._unnamed(partial)
            | self._unneeded()
            | self._replica.derived(_old_pseudo_gradients)
        )
        await asyncio.to_thread(self._store.remove_partial, before_s, going)

    def _unneeded(self) -> frozenset[ArtifactId]:
        """Return what nobody needs any more; a newer version may read again what ours doesn't."""
        found = self._replica.derived(_unneeded)
        if not self._replica.state.is_understood:
            return found
        return found | self._replica.derived(self._outlived)

    def _outlived(self, state: State) -> frozenset[ArtifactId]:
        return outlived(state.cycles.values(), self._rounds_kept)

    async def _unnamed(self, artifacts: Iterable[ArtifactId]) -> frozenset[ArtifactId]:
        """Return which of these no fact names; thousands of facts are read in a thread."""
        facts: list[Fact] = [fact for _, fact in self._replica.state.placed()]
        return await asyncio.to_thread(strays, artifacts, facts)

    async def look_at_curves(self) -> None:
        """Remove those of runs that are over, but for the newest."""
        cycles = self._replica.state.cycles.items()
        running = {short(cycle) for cycle, state in cycles if state.goes_on}
        if gone := await asyncio.to_thread(remove_old, self._state_dir.curves, running):
            log.info("curves_removed", extra={"runs": ",".join(gone)})

    async def look_at_scratch(self) -> None:
        """Remove what workers left that nobody came back for within a week."""
        try:
            await asyncio.to_thread(remove_stale, self._state_dir.scratch)
        except OSError as error:
            log.warning("scratch_not_removed", extra={"reason": str(error)})

    async def look_at_shipped(self, at_s: float) -> None:
        """Remove working folders of launches that nobody works in any more; `at_s`: wall time."""
        if self._shipped is not None:
            try:
                await asyncio.to_thread(self._shipped.look, at_s)
            except (OSError, JupiterError) as error:
                log.warning("shipped_not_removed", extra={"reason": str(error)})

    async def _remove(self, artifact: ArtifactId, unused_since_s: float = math.inf) -> None:
        try:
            is_gone = await asyncio.to_thread(self._store.remove, artifact, unused_since_s)
        except JupiterError as error:
            log.warning("artifact_not_removed", extra={"reason": error.message})
            return
        if is_gone:
            log.info("artifact_removed", extra={"artifact": short(artifact)})


def _parts_in(store: ArtifactStore, before_s: float) -> list[ArtifactId]:
    """Return the parts of checkpoints that were last used before then (wall time)."""
    unused = [(each, store.path(each)) for each in store.unused_since(before_s)]
    files = DESCRIPTION_FILE, DATA_FILE
    return [each for each, path in unused if all((path / file).is_file() for file in files)]


def _unneeded(state: State) -> frozenset[ArtifactId]:
    return unneeded(state.cycles.values())


def _old_pseudo_gradients(state: State) -> frozenset[ArtifactId]:
    return old_pseudo_gradients(state.cycles.values())
