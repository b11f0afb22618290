"""The answers to peers that ask which chunks of an artifact to fetch from here next.

Owns one `SeedingOrder` for each requested artifact, the wait until a chunk is available, and the
list of peers that request the same. Doesn't know how chunks travel, or who may ask.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.bitmap import unpacked
from jupiterd.store.manifest import Manifest
from jupiterd.store.seeding_order import SeedingOrder

MAX_ARTIFACTS: Final = 64
"""Of more artifacts, the one that was requested longest ago loses its order and starts again."""

MAX_OTHERS: Final = 64
RECENT_S: Final = 10.0
MAX_WAIT_S: Final = 2.0

GATHERS_S: Final = 0.1
"""Seconds that a node which still fetches waits for a batch that is worth a call."""

ENOUGH_CHUNKS: Final = 4


@dataclass
class _Artifact:
    handed_out: SeedingOrder = field(default_factory=SeedingOrder)
    askers: OrderedDict[NodeId, float] = field(default_factory=OrderedDict[NodeId, float])

    def note(self, asker: NodeId, now_s: float) -> None:
        """Note that a peer asks; forget those that haven't asked for RECENT_S."""
        self.askers[asker] = now_s
        self.askers.move_to_end(asker)
        while next(iter(self.askers.values())) < now_s - RECENT_S:
            self.askers.popitem(last=False)

    def others(self, asker: NodeId) -> list[NodeId]:
        """Return the other peers that asked lately."""
        return [node for node in self.askers if node != asker][-MAX_OTHERS:]


class ChunkRequests:
    """Chooses the chunks that each peer fetches from this node."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._drawn: OrderedDict[ArtifactId, _Artifact] = OrderedDict()

    async def draw(
        self, artifact: ArtifactId, asker: NodeId, wanted: bytes, max_bytes: int, wait_s: float
    ) -> tuple[list[int], list[NodeId]]:
        """Return the chunks that a peer should fetch from here next, and the other peers that ask.

        No chunks are returned where none of the wanted ones arrived here within the wait.

        Raises:
            NotFoundError: the artifact is neither stored nor being fetched.
            CorruptArtifactError: the peer wants chunks that the artifact doesn't have.
        """
        manifest = await self._manifest(artifact)
        lacked = unpacked(wanted, len(manifest.chunks))
        of_it = self._of(artifact)
        of_it.note(asker, asyncio.get_running_loop().time())
        here = await self._some_of(artifact, lacked, min(wait_s, MAX_WAIT_S))

        def size_of(chunk: int) -> int:
            return manifest.chunks[chunk].size_bytes

        return of_it.handed_out.draw(here, size_of, max_bytes), of_it.others(asker)

    async def _manifest(self, artifact: ArtifactId) -> Manifest:
        if growth := self._store.growing(artifact):
            return growth.manifest
        return await asyncio.to_thread(self._store.manifest, artifact)

    async def _some_of(self, artifact: ArtifactId, lacked: int, wait_s: float) -> int:
        """Return the wanted chunks that are here, once there are any."""
        clock = asyncio.get_running_loop().time
        began_s = clock()
        while growth := self._store.growing(artifact):
            growth.share()
            here = lacked & growth.verified
            left_s = began_s + (min(GATHERS_S, wait_s) if here else wait_s) - clock()
            if left_s <= 0 or here.bit_count() >= min(ENOUGH_CHUNKS, lacked.bit_count()):
                return here
            await growth.wait(left_s)
        if not self._store.holds(artifact):
            raise NotFoundError(f"artifact {artifact[:8]} isn't on this node any more")
        return lacked

    def _of(self, artifact: ArtifactId) -> _Artifact:
        found = self._drawn.setdefault(artifact, _Artifact())
        self._drawn.move_to_end(artifact)
        while len(self._drawn) > MAX_ARTIFACTS:
            self._drawn.popitem(last=False)
        return found
