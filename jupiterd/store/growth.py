"""An artifact that is being fetched, as others see it: what of it can be had here already.

Owns waking those who wait for more. Doesn't know who they are. Lives in the event loop alone.
"""

import asyncio
from pathlib import Path

from jupiterd.store.manifest import Manifest
from jupiterd.store.partial import PartialArtifact


class Growth:
    """One fetch under way."""

    def __init__(self, manifest_bytes: bytes, partial: PartialArtifact, files: Path) -> None:
        """`files` is the folder of what is here so far."""
        self.manifest_bytes = manifest_bytes
        self.files = files
        self._partial = partial
        self._more = asyncio.Event()

    @property
    def manifest(self) -> Manifest:
        """What it is to be."""
        return self._partial.manifest

    @property
    def verified(self) -> int:
        """The chunks that are here, as a set of bits."""
        return self._partial.verified

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
