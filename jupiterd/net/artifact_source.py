"""A peer as a place to fetch artifacts from.

Owns turning the Artifacts service into the port that transfers use. Doesn't verify anything: the
receiver does.
"""

from collections.abc import AsyncIterator, Sequence

import grpc.aio

from jupiterd.failures import from_rpc
from jupiterd.ids import ArtifactId
from jupiterd.rpc import artifact_pb2
from jupiterd.rpc.artifact_pb2_grpc import ArtifactsStub

MANIFEST_TIMEOUT_S = 10.0


class PeerArtifactSource:
    """Asks one peer for manifests and bytes; every failure comes out as a JupiterError."""

    def __init__(self, name: str, stub: ArtifactsStub) -> None:
        self._name = name
        self._stub = stub

    @property
    def name(self) -> str:
        """The peer's name, for logs."""
        return self._name

    async def manifest(self, artifact: ArtifactId) -> bytes | None:
        """Return the manifest's bytes, or None where the peer doesn't hold it."""
        try:
            reply = await self._stub.GetManifest(
                artifact_pb2.ManifestRequest(id=artifact), timeout=MANIFEST_TIMEOUT_S
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self._name) from error
        return reply.manifest or None

    async def fetch(
        self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield (offset, data) pieces of the (offset, length) ranges, in their order."""
        wanted = [artifact_pb2.ByteRange(offset=offset, length=length) for offset, length in ranges]
        call = self._stub.Fetch(artifact_pb2.FetchRequest(id=artifact, ranges=wanted))
        try:
            async for piece in call:
                yield piece.offset, piece.data
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self._name) from error
        finally:
            call.cancel()
