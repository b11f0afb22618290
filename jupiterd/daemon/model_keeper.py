"""Laying the model of each finished round where people find it.

Owns the wish for a local copy. Doesn't know how an artifact is fetched (`library`) or laid out
(`exports`).
"""

import logging

from jupiterd.cluster.facts import RoundCommitted
from jupiterd.cluster.state import CycleState
from jupiterd.daemon.exports import Exports
from jupiterd.daemon.journal import Journal
from jupiterd.daemon.library import Library
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId

log = logging.getLogger(__name__)


class ModelKeeper:
    """Keeps `runs/` up to date with the ledger."""

    def __init__(self, journal: Journal, library: Library, exports: Exports) -> None:
        self._journal = journal
        self._library = library
        self._exports = exports

    async def run(self) -> None:
        """Look at every entry that comes in."""
        version = -1
        while True:
            version = await self._journal.changed_since(version)
            for cycle in list(self._journal.state.cycles.values()):
                for done in cycle.rounds:
                    await self._keep(cycle, done)

    async def _keep(self, cycle: CycleState, done: RoundCommitted) -> None:
        if self._exports.folder(cycle, done.round).is_dir():
            return
        try:
            artifact = await self._library.ensure(ArtifactId(done.parent))
        except JupiterError as error:
            log.warning("model_not_here_yet", extra={"reason": error.message})
            return
        folder = self._exports.export(cycle, done.round, artifact)
        log.info("model_exported", extra={"folder": str(folder)})
