"""Telling others which chunks to fetch from here next.

Owns one `SeedingOrder` for each artifact that is asked for, waiting until there is something to
give, and who asks for the same. Doesn't know how chunks travel, or who may ask.
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
"""Of more than that, the one that was drawn from longest ago is begun anew."""

MAX_OTHERS: Final = 64
RECENT_S: Final = 10.0
MAX_WAIT_S: Final = 2.0

GATHERS_S: Final = 0.1
"""Who gives as it gets waits so long for a batch that is worth a call."""

ENOUGH_CHUNKS: Final = 4


@dataclass
class _Artifact:
    handed_out: SeedingOrder = field(default_factory=SeedingOrder)
    askers: OrderedDict[NodeId, float] = field(default_factory=OrderedDict[NodeId, float])

    def note(self, asker: NodeId, now_s: float) -> None:
        """Take note of who draws; whoever hasn't for a while is forgotten."""
        self.askers[asker] = now_s
        self.askers.move_to_end(asker)
        while next(iter(self.askers.values())) < now_s - RECENT_S:
            self.askers.popitem(last=False)

    def others(self, asker: NodeId) -> list[NodeId]:
        """Return who has drawn lately beside this one."""
        return [node for node in self.askers if node != asker][-MAX_OTHERS:]


class ChunkRequests:
    """What this node gives out of its artifacts."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._drawn: OrderedDict[ArtifactId, _Artifact] = OrderedDict()

    async def draw(
        self, artifact: ArtifactId, asker: NodeId, wanted: bytes, max_bytes: int, wait_s: float
    ) -> tuple[list[int], list[NodeId]]:
        """Return the chunks that an asker should fetch from here next, and who asks beside it.

        There are none where nothing that is wanted came here within the wait.

        Raises:
            NotFoundError: it is neither here nor on its way.
            CorruptArtifactError: chunks are wanted that it doesn't have.
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
        """Return which of these are here, as soon as it is some of them."""
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
