"""Serving artifacts to other members.

Owns the Artifacts service: who may ask, how much at once, and the size of the pieces. Doesn't know
what an artifact means, or who is a member: it asks.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Never, Protocol

import grpc.aio

from jupiterd.errors import (
    CorruptArtifactError,
    JupiterError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.net.chunk_codec import Piece
from jupiterd.net.credentials import caller
from jupiterd.protocol.call_errors import abort
from jupiterd.rpc import artifact_pb2
from jupiterd.rpc.artifact_pb2_grpc import ArtifactsServicer
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.chunk_requests import ChunkRequests
from jupiterd.store.reading import ServedArtifact, read_ahead

PIECE_BYTES: Final = 1024 << 10
"""Of what is read at once, so much is in one message."""

FETCHES_PER_PEER: Final = 4
TURN_REPORT_S: Final = 5.0
"""Whoever waits for its turn hears that we are there so often: silence would count as a stall."""

MAX_RANGES: Final = 4096
MAX_IDS: Final = 4096

_Context = grpc.aio.ServicerContext[Any, Any]


class ServedArtifacts(Protocol):
    """What is served, and what is done about it."""

    store: ArtifactStore

    async def replicate(self, artifact: ArtifactId, asker: NodeId, /) -> None:
        """Bring an artifact here on a member's wish."""
        ...

    def part_bytes(self, most_bytes: int, /) -> int:
        """Return how many bytes to send before `throttle` is called."""
        ...

    async def throttle(self, size_bytes: int, took_s: float) -> None:
        """Wait as long as is due after a part was sent."""
        ...

    def note_damage(self, artifact: ArtifactId) -> None:
        """Have a copy mended that turned out to be damaged; nothing of that is served."""
        ...


class ArtifactService(ArtifactsServicer):
    """Answers members' questions for artifacts and sends them."""

    def __init__(self, shelf: ServedArtifacts, is_member: Callable[[NodeId], bool]) -> None:
        """Take what is served, and the roster."""
        self._artifacts = shelf
        self._store = shelf.store
        self._drawing = ChunkRequests(shelf.store)
        self._is_member = is_member
        self._fetches: defaultdict[NodeId, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(FETCHES_PER_PEER)
        )

    async def Have(
        self, request: artifact_pb2.HaveRequest, context: _Context
    ) -> artifact_pb2.HaveReply:
        """Say which of these artifacts are complete here."""
        await self._member(context)
        ids = [ArtifactId(one) for one in request.ids[:MAX_IDS]]
        present = await asyncio.to_thread(lambda: [*filter(self._store.holds, ids)])
        return artifact_pb2.HaveReply(
            ids=present,
            growing=filter(self._store.growing, ids),
            free_bytes=await asyncio.to_thread(self._store.free_bytes),
        )

    async def GetManifest(
        self, request: artifact_pb2.ManifestRequest, context: _Context
    ) -> artifact_pb2.ManifestReply:
        """Return a manifest; empty where the artifact is neither stored nor being fetched."""
        await self._member(context)
        if growth := self._store.growing(ArtifactId(request.id)):
            return artifact_pb2.ManifestReply(manifest=growth.manifest_bytes)
        try:
            manifest = await asyncio.to_thread(self._store.manifest_bytes, ArtifactId(request.id))
        except NotFoundError:
            manifest = b""
        return artifact_pb2.ManifestReply(manifest=manifest)

    async def Draw(
        self, request: artifact_pb2.DrawRequest, context: _Context
    ) -> artifact_pb2.DrawReply:
        """Name the chunks that the caller should fetch here next."""
        peer = await self._member(context)
        try:
            chunks, others = await self._drawing.draw(
                ArtifactId(request.id),
                peer,
                request.wanted,
                request.max_bytes,
                request.wait_ms / 1000,
            )
        except JupiterError as error:
            await _refuse(context, error)
        return artifact_pb2.DrawReply(chunks=chunks, others=others)

    async def Fetch(  # pyright: ignore[reportIncompatibleMethodOverride] - see `artifact_wire`
        self, request: artifact_pb2.FetchRequest, context: _Context
    ) -> AsyncIterator[Piece]:
        """Send the byte ranges in their order; a fifth call of one peer waits for its turn.

        It gets pieces of nothing meanwhile.
        """
        peer = await self._member(context)
        if len(request.ranges) > MAX_RANGES:
            await _refuse(context, UsageError(f"more than {MAX_RANGES} ranges were asked for"))
        turn = self._fetches[peer]
        while not await _has_come(turn):
            yield Piece(0, b"")
        try:
            async for piece in self._requested_pieces(request, context):
                yield piece
        finally:
            turn.release()

    async def _requested_pieces(
        self, request: artifact_pb2.FetchRequest, context: _Context
    ) -> AsyncIterator[Piece]:
        try:
            ranges = [(wanted.offset, wanted.length) for wanted in request.ranges]
            reading = await asyncio.to_thread(_opened, self._store, ArtifactId(request.id), ranges)
        except JupiterError as error:
            await _refuse(context, error)
        async for piece in self._pieces(reading, ranges, context):
            yield piece

    async def _pieces(
        self, reading: ServedArtifact, ranges: list[tuple[int, int]], context: _Context
    ) -> AsyncIterator[Piece]:
        clock, part_bytes = asyncio.get_running_loop().time, self._artifacts.part_bytes(PIECE_BYTES)
        try:
            async for offset, data in read_ahead(reading, ranges):
                view = memoryview(data)
                for start in range(0, len(view), part_bytes):
                    part, began_s = view[start : start + part_bytes], clock()
                    yield Piece(offset + start, part)
                    await self._artifacts.throttle(len(part), clock() - began_s)
        except JupiterError as error:
            if isinstance(error, CorruptArtifactError):
                self._artifacts.note_damage(reading.artifact)
            await _refuse(context, error)

    async def Replicate(
        self, request: artifact_pb2.ReplicateRequest, context: _Context
    ) -> artifact_pb2.ReplicateReply:
        """Fetch an artifact for ourselves and say whether it is here now."""
        peer = await self._member(context)
        try:
            await self._artifacts.replicate(ArtifactId(request.id), peer)
        except JupiterError as error:
            return artifact_pb2.ReplicateReply(held=False, reason=error.message)
        is_stored = self._store.holds(ArtifactId(request.id))
        return artifact_pb2.ReplicateReply(
            held=is_stored, reason="" if is_stored else "it wasn't fetched"
        )

    async def _member(self, context: _Context) -> NodeId:
        peer = caller(context)
        if not self._is_member(peer):
            await _refuse(context, RefusedError(f"node {peer[:8]} is no member of this cluster"))
        return peer


def _opened(
    store: ArtifactStore, artifact: ArtifactId, ranges: list[tuple[int, int]]
) -> ServedArtifact:
    reading = ServedArtifact(store, artifact)
    reading.check(ranges)
    return reading


async def _has_come(turn: asyncio.Semaphore) -> bool:
    try:
        async with asyncio.timeout(TURN_REPORT_S):
            return await turn.acquire()
    except TimeoutError:
        return False


async def _refuse(context: _Context, error: JupiterError) -> Never:
    await abort(context, error)
    raise error  # abort has raised already; this is for the type checker
