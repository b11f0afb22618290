"""A peer as a place to fetch artifacts from.

Owns turning the Artifacts service into the port that transfers use. Doesn't verify anything: the
receiver does.
"""

from collections.abc import AsyncIterator, Sequence
from typing import cast

import grpc.aio

from jupiterd.ids import ArtifactId, NodeId
from jupiterd.net.chunk_codec import Piece
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import artifact_pb2
from jupiterd.rpc.artifact_pb2_grpc import ArtifactsStub

MANIFEST_TIMEOUT_S = 10.0
DRAW_TIMEOUT_S = 10.0


class PeerArtifactSource:
    """Fetches manifests and bytes from one peer; every failure raises a JupiterError."""

    def __init__(self, name: str, stub: ArtifactsStub) -> None:
        self._name = name
        self._stub = stub

    @property
    def name(self) -> str:
        """The peer's name, for logs."""
        return self._name

    async def manifest(self, artifact: ArtifactId) -> bytes | None:
        """Return the manifest's bytes; None if the peer doesn't hold it."""
        try:
            reply = await self._stub.GetManifest(
                artifact_pb2.ManifestRequest(id=artifact), timeout=MANIFEST_TIMEOUT_S
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self._name) from error
        return reply.manifest or None

    async def draw(
        self, artifact: ArtifactId, wanted: bytes, max_bytes: int, wait_s: float
    ) -> tuple[list[int], list[NodeId]]:
        """Ask the peer which chunks to fetch from it; return those, and the nodes that fetch too.

        Args:
            artifact: the artifact to fetch.
            wanted: the chunks still missing, as a bit set.
            max_bytes: the peer assigns chunks of at most this size together.
            wait_s: how long the peer may wait before it answers with no chunk.
        """
        request = artifact_pb2.DrawRequest(
            id=artifact, wanted=wanted, max_bytes=max_bytes, wait_ms=round(wait_s * 1000)
        )
        try:
            reply = await self._stub.Draw(request, timeout=wait_s + DRAW_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self._name) from error
        return list(reply.chunks), [NodeId(node) for node in reply.others]

    async def fetch(
        self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
    ) -> AsyncIterator[Piece]:
        """Yield pieces of the (offset, length) ranges, in bytes and in the order of the ranges."""
        wanted = [artifact_pb2.ByteRange(offset=offset, length=length) for offset, length in ranges]
        call = self._stub.Fetch(artifact_pb2.FetchRequest(id=artifact, ranges=wanted))
        try:
            async for piece in call:
                yield cast("Piece", piece)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self._name) from error
        finally:
            call.cancel()
