"""Laying the model of each finished round where people find it.

Owns the wish for a local copy. Doesn't know how an artifact is fetched (`artifact_cache`) or laid
out (`model_exports`).
"""

import asyncio
import logging

from jupiterd.cluster.facts.facts import RoundCommitted
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import CycleState
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.model_exports import ModelExports
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId

log = logging.getLogger(__name__)

RETRY_S = 10.0


class ModelPublisher:
    """Keeps `runs/` up to date with the ledger."""

    def __init__(
        self, replica: Replica, artifact_cache: ArtifactCache, exports: ModelExports
    ) -> None:
        self._replica = replica
        self._artifact_cache = artifact_cache
        self._exports = exports

    async def run(self) -> None:
        """Look at every entry that comes in."""
        version = -1
        while True:
            version = await self._replica.changed_since(version)
            if not await self._keep_all():
                await asyncio.sleep(RETRY_S)
                version = -1  # look again, though nothing may have been recorded since

    async def _keep_all(self) -> bool:
        """Return whether the model of every finished round is here."""
        wanted = [
            (cycle, done)
            for cycle in self._replica.state.cycles.values()
            if is_whole(cycle)
            for done in cycle.rounds
            if not self._exports.folder(
                cycle, done.round, ArtifactId(done.final_checkpoint)
            ).is_dir()
        ]
        return all([await self._keep(cycle, done) for cycle, done in wanted])

    async def _keep(self, cycle: CycleState, done: RoundCommitted) -> bool:
        try:
            model = ArtifactId(done.final_checkpoint)
            files = await self._artifact_cache.ensure(model)
            folder = await asyncio.to_thread(self._exports.export, cycle, done.round, model, files)
        except (JupiterError, OSError) as error:
            log.warning("model_not_here_yet", extra={"reason": str(error)})
            return False
        log.info("model_exported", extra={"folder": str(folder)})
        return True
