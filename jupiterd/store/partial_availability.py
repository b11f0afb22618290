"""An artifact that is being fetched, as others see it: what of it can be had here already.

Owns waking those who wait for more, and the latest chunks in memory for them. Doesn't know who they
are. Lives in the event loop alone.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jupiterd.store.assembly import Whole
from jupiterd.store.manifest import Chunk, Manifest
from jupiterd.store.partial import PartialArtifact

MAX_CACHED_BYTES: Final = 32 << 20
"""Others ask within moments for what is new."""


class PartialAvailability:
    """One fetch under way."""

    def __init__(self, manifest_bytes: bytes, partial: PartialArtifact, files: Path) -> None:
        """`files` is the folder of what is here so far."""
        self.manifest_bytes = manifest_bytes
        self.files = files
        self._partial = partial
        self._more = asyncio.Event()
        self._is_shared = False
        self._cached: OrderedDict[int, memoryview] = OrderedDict()
        self._cached_bytes = 0

    @property
    def manifest(self) -> Manifest:
        """What it is to be."""
        return self._partial.manifest

    @property
    def verified(self) -> int:
        """The chunks that are here, as a set of bits."""
        return self._partial.verified

    def share(self) -> None:
        """Take note that others ask for it: from now on it pays to keep what is new."""
        self._is_shared = True

    def keep(self, chunks: Iterable[Whole]) -> None:
        """Keep the latest verified chunks as they came, so that none is read and hashed again."""
        if not self._is_shared:
            return
        for index, data in chunks:
            if index not in self._cached:
                self._cached[index] = data
                self._cached_bytes += len(data)
        while self._cached_bytes > MAX_CACHED_BYTES:
            _, data = self._cached.popitem(last=False)
            self._cached_bytes -= len(data)

    def cached(self, chunk: Chunk) -> memoryview | None:
        """Return a chunk's bytes where they are still in memory: those that were verified."""
        return self._cached.get(chunk.index)

    def note(self) -> None:
        """Wake everybody: more is here, or no more will come."""
        self._more.set()
        self._more = asyncio.Event()

    async def wait(self, timeout_s: float) -> None:
        """Return once more is here than now, or after that time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._more.wait()
        except TimeoutError:
            return
