"""What a node with little room on its disk gives up: copies that others have and it doesn't use.

Owns when it looks, and asking the others. Doesn't know which may go
(`cluster.artifacts.replication_policy`).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from jupiterd.cluster.artifacts.replication_policy import Holder, has_room, in_work, spare
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, NodeId, short

log = logging.getLogger(__name__)

UNUSED_S: Final = 6 * 3600.0
"""What was used since then stays, though its work is over: somebody may look at it."""


class DiskPressure:
    """Keeps on this node no more than its work needs, where its disk is nearly full."""

    def __init__(
        self,
        replica: Replica,
        artifact_cache: ArtifactCache,
        others: Callable[[], frozenset[NodeId]],
    ) -> None:
        """`others` are the members that are alive, but for this one."""
        self._replica = replica
        self._artifact_cache = artifact_cache
        self._others = others

    async def look(self, at_s: float) -> None:
        """Give up what two others with room have, unless there is room here; `at_s`: wall time."""
        store = self._artifact_cache.store
        free_bytes = await asyncio.to_thread(store.free_bytes)
        if has_room(free_bytes) or not self._replica.state.is_understood:
            return
        unused = await asyncio.to_thread(store.unused_since, at_s - UNUSED_S)
        version, needed = self._in_work()
        artifacts = [artifact for artifact in unused if artifact not in needed]
        for artifact in spare(artifacts, await self._holders(artifacts)):
            if self._replica.version != version:
                version, needed = self._in_work()
            if artifact not in needed:
                await self._remove(artifact, at_s - UNUSED_S)

    def _in_work(self) -> tuple[int, frozenset[str]]:
        """Return what work needs, and of which ledger that is true; it reads thousands of facts."""
        return self._replica.version, in_work(self._replica.state.cycles.values())

    async def _holders(self, artifacts: list[ArtifactId]) -> list[Holder]:
        if not artifacts:
            return []
        nodes = sorted(self._others())
        answers = await asyncio.gather(
            *(self._artifact_cache.held_by(node, artifacts) for node in nodes)
        )
        return [Holder(node, "", stored, free) for node, stored, free in filter(None, answers)]

    async def _remove(self, artifact: ArtifactId, unused_since_s: float) -> None:
        try:
            is_gone = await asyncio.to_thread(
                self._artifact_cache.store.remove, artifact, unused_since_s
            )
        except JupiterError as error:
            log.warning("copy_not_given_up", extra={"reason": error.message})
            return
        if is_gone:
            log.info("copy_given_up", extra={"artifact": short(artifact)})
