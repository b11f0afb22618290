"""Bringing an artifact here from whoever has it.

Owns the order in which sources are tried and what becomes of a broken one. Doesn't know what a
source is made of.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from jupiterd.errors import (
    CorruptArtifactError,
    DiskFullError,
    JupiterError,
    NotFoundError,
    PeerUnreachableError,
    StateDirError,
)
from jupiterd.ids import ArtifactId
from jupiterd.ports import ArtifactSource
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import Manifest, artifact_id
from jupiterd.store.partial import PartialArtifact

MAX_RANGES: Final = 4096
"""Byte ranges asked for in one call; the rest in the next."""

STALL_S: Final = 20.0
"""A source that sends nothing for so long is given up."""

_log = logging.getLogger(__name__)


async def fetch(
    store: ArtifactStore,
    artifact: ArtifactId,
    sources: Sequence[ArtifactSource],
    stall_s: float = STALL_S,
) -> None:
    """Make `store` hold the artifact; whoever asks for the same one meanwhile waits for the first.

    What was fetched before a break stays on disk and isn't fetched again.

    Raises:
        NotFoundError: no source has it.
        JupiterError: every source that has it failed; this is the last one's failure.
        DiskFullError, StateDirError: it can't be written here.
    """
    async with store.arrival(artifact):
        if await asyncio.to_thread(store.holds, artifact):
            return
        await _fetch_from_any(store, artifact, sources, stall_s)


async def _fetch_from_any(
    store: ArtifactStore, artifact: ArtifactId, sources: Sequence[ArtifactSource], stall_s: float
) -> None:
    failure: JupiterError | None = None
    partial: PartialArtifact | None = None
    for source in sources:
        try:
            manifest_bytes = await _manifest(source, artifact, stall_s)
        except JupiterError as error:
            failure = _give_up(source, artifact, error)
            continue
        if manifest_bytes is None:
            continue
        partial = partial or await asyncio.to_thread(store.begin, manifest_bytes)
        try:
            await _fill(partial, artifact, source, stall_s)
        except (DiskFullError, StateDirError):
            raise  # ours: no other source would help
        except JupiterError as error:
            failure = _give_up(source, artifact, error)
        else:
            await asyncio.to_thread(partial.commit)
            return
    raise failure or NotFoundError(f"artifact {artifact[:8]} is on no node that can be reached")


async def _manifest(source: ArtifactSource, artifact: ArtifactId, stall_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(stall_s):
            manifest_bytes = await source.manifest(artifact)
    except TimeoutError as error:
        raise PeerUnreachableError(f"{source.name} sent nothing for {stall_s:g} s") from error
    if manifest_bytes is not None and artifact_id(manifest_bytes) != artifact:
        raise CorruptArtifactError(f"{source.name} sent a manifest of something else")
    return manifest_bytes


async def _fill(
    partial: PartialArtifact, artifact: ArtifactId, source: ArtifactSource, stall_s: float
) -> None:
    """Take all that is still missing from one source."""
    while runs := partial.missing()[:MAX_RANGES]:
        assembler = _Assembler(partial.manifest, runs)
        async with _closing(source.fetch(artifact, assembler.ranges)) as pieces:
            while piece := await _next_piece(source, pieces, stall_s):
                chunks = assembler.feed(*piece)
                if chunks:
                    await asyncio.to_thread(partial.write_all, chunks)
        if assembler.is_waiting:
            raise PeerUnreachableError(f"{source.name} ended the transfer before all of it came")


async def _next_piece(
    source: ArtifactSource, pieces: AsyncIterator[tuple[int, bytes]], stall_s: float
) -> tuple[int, bytes] | None:
    try:
        async with asyncio.timeout(stall_s):
            return await anext(pieces, None)
    except TimeoutError as error:
        raise PeerUnreachableError(f"{source.name} sent nothing for {stall_s:g} s") from error


@asynccontextmanager
async def _closing(
    pieces: AsyncIterator[tuple[int, bytes]],
) -> AsyncGenerator[AsyncIterator[tuple[int, bytes]], None]:
    """Let a source know at once that no more is wanted."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def _give_up(source: ArtifactSource, artifact: ArtifactId, error: JupiterError) -> JupiterError:
    _log.warning("artifact source failed source=%s id=%s error=%s", source.name, artifact, error)
    return error


class _Assembler:
    """Cuts the pieces of one transfer into chunks; takes nothing that wasn't asked for."""

    def __init__(self, manifest: Manifest, runs: Sequence[tuple[int, int]]) -> None:
        self._due = deque(chunk for run in runs for chunk in manifest.chunks[slice(*run)])
        self._buffer = bytearray()
        ends = [(manifest.chunks[first], manifest.chunks[after - 1]) for first, after in runs]
        self.ranges = [
            (first.offset, last.offset + last.size_bytes - first.offset) for first, last in ends
        ]
        """(offset, length) of each run, in bytes of the files laid end to end."""

    @property
    def is_waiting(self) -> bool:
        """Say whether a chunk is still to come."""
        return bool(self._due)

    def feed(self, offset: int, data: bytes) -> list[tuple[int, bytes]]:
        """Take the next piece and return the chunks that it completes, not yet verified.

        Raises:
            CorruptArtifactError: the piece isn't the next one.
        """
        if not data or not self._due or offset != self._due[0].offset + len(self._buffer):
            raise CorruptArtifactError("a transfer brought bytes that weren't asked for")
        self._buffer += data
        complete: list[tuple[int, bytes]] = []
        while self._due and len(self._buffer) >= self._due[0].size_bytes:
            chunk = self._due.popleft()
            complete.append((chunk.index, bytes(self._buffer[: chunk.size_bytes])))
            del self._buffer[: chunk.size_bytes]
        return complete
