"""The promises between the pure core and the outside world.

Owns the Protocols that adapters keep and shells rely on. Knows none of the adapters.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from jupiterd.ids import ArtifactId, NodeId


@dataclass(frozen=True)
class Address:
    """Where a jupiterd may answer: only ever a hint."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Discovery(Protocol):
    """Finds addresses of other daemons and makes ours known."""

    async def start(self, port: int) -> None:
        """Announce our port and begin to look; called once."""
        ...

    def sightings(self) -> AsyncIterator[Address]:
        """Yield each address as it is seen, the same one again when it is announced anew."""
        ...

    async def close(self) -> None:
        """Take our announcement back (goodbye) and stop; idempotent."""
        ...


class ArtifactSource(Protocol):
    """Another place that may hold an artifact, such as a peer."""

    @property
    def name(self) -> str:
        """For logs."""
        ...

    async def manifest(self, artifact: ArtifactId) -> bytes | None:
        """Return the manifest's bytes, or None where it isn't held."""
        ...

    async def draw(
        self, artifact: ArtifactId, wanted: bytes, max_bytes: int, wait_s: float
    ) -> tuple[list[int], list[NodeId]]:
        """Return which of the wanted chunks (bits) to fetch from here, and who else fetches it.

        None may be there for as long as the wait; raises NotFoundError where it isn't held at all.
        """
        ...

    def fetch(
        self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
    ) -> AsyncIterator[tuple[int, bytes | memoryview]]:
        """Yield (offset, data) pieces of (offset, length) ranges of the files laid end to end."""
        ...
