"""Reads an artifact for peers: each chunk is verified before any byte of it is sent.

Owns the verification and the lookup of bytes: in the files of a whole or a partial artifact, or in
memory, where chunks that just arrived were verified already. Doesn't know who asks.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from pathlib import Path
from typing import Final

from blake3 import blake3

from jupiterd.errors import CorruptArtifactError, NotFoundError
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore, read_range
from jupiterd.store.bitmap import of
from jupiterd.store.manifest import Chunk, Manifest

BLOCK_BYTES: Final = 4 << 20
"""Bytes read at once, unless one chunk is larger."""

Part = tuple[int, bytes | memoryview]
"""(offset in the concatenated files, bytes)."""


class ServedArtifact:
    """An artifact that peers fetch from this node, whole or still being fetched itself."""

    def __init__(self, store: ArtifactStore, artifact: ArtifactId) -> None:
        """Raises NotFoundError where no part of the artifact is here."""
        self._store = store
        self.artifact = artifact
        growth = store.growing(artifact)
        self.manifest: Manifest = growth.manifest if growth else store.manifest(artifact)

    def blocks(self, offset: int, length: int) -> Iterator[tuple[int, int]]:
        """Cut a byte range into (offset, length) blocks that are read at once.

        Raises:
            CorruptArtifactError: it reaches beyond the end.
        """
        end = offset + length
        for chunk in self.manifest.covering(offset, length):
            after = chunk.offset + chunk.size_bytes
            if after - offset >= BLOCK_BYTES or after >= end:
                yield offset, min(after, end) - offset
                offset = after

    def check(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Raise CorruptArtifactError where a range reaches beyond the end."""
        for offset, length in ranges:
            self.manifest.covering(offset, length)

    def at_hand(self, offset: int, length: int) -> list[Part] | None:
        """Return a byte range from memory; None where not all of it is there.

        Call it on the event loop only. Raises CorruptArtifactError where it reaches beyond the end.
        """
        if (growth := self._store.growing(self.artifact)) is None:
            return None
        parts: list[Part] = []
        for chunk in self.manifest.covering(offset, length):
            if (data := growth.cached(chunk)) is None:
                return None
            start = max(offset - chunk.offset, 0)
            parts.append((chunk.offset + start, data[start : offset + length - chunk.offset]))
        return parts or None

    def read(self, offset: int, length: int) -> bytes:
        """Return a byte range, read from the disk and verified against the manifest.

        Raises:
            NotFoundError: it isn't here, or not yet.
            CorruptArtifactError: it is damaged on this disk.
        """
        chunks = self.manifest.covering(offset, length)
        if not chunks:
            return b""
        start, after = chunks[0].offset, chunks[-1].offset + chunks[-1].size_bytes
        data = self._raw(chunks, start, after - start)
        view = memoryview(data)
        for chunk in chunks:
            at = chunk.offset - start
            if blake3(view[at : at + chunk.size_bytes]).hexdigest() != chunk.hash:
                raise CorruptArtifactError(
                    f"chunk {chunk.index} of artifact {self.artifact[:8]} is damaged on this disk"
                )
        if (start, after) == (offset, offset + length):
            return data
        return data[offset - start : offset - start + length]

    def _raw(self, chunks: tuple[Chunk, ...], offset: int, length: int) -> bytes:
        for _ in range(2):  # what was growing may have been put in its place meanwhile
            try:
                return read_range(self._files(chunks), self.manifest, offset, length)
            except FileNotFoundError:
                continue
        raise CorruptArtifactError(f"artifact {self.artifact[:8]} lacks a file on this disk")

    def _files(self, chunks: tuple[Chunk, ...]) -> Path:
        growth = self._store.growing(self.artifact)
        if growth is None or self._store.holds(self.artifact):
            return self._store.path(self.artifact)
        if of(chunk.index for chunk in chunks) & ~growth.verified:
            raise NotFoundError(f"artifact {self.artifact[:8]} isn't all on this node yet")
        return growth.files


async def read_ahead(
    reading: ServedArtifact, ranges: Iterable[tuple[int, int]]
) -> AsyncGenerator[Part]:
    """Yield (offset, data) of ranges, block by block; the next one is read while one is sent.

    Raises:
        NotFoundError, CorruptArtifactError: as `ServedArtifact.read`, after the ranges before it.
    """
    ahead: asyncio.Future[list[Part]] | None = None
    try:
        for block in (block for each in ranges for block in reading.blocks(*each)):
            read, ahead = ahead, asyncio.ensure_future(_read(reading, *block))
            for part in await read if read is not None else ():
                yield part
        for part in await ahead if ahead is not None else ():
            yield part
    finally:
        if ahead is not None:
            ahead.cancel()


async def _read(reading: ServedArtifact, offset: int, length: int) -> list[Part]:
    if parts := reading.at_hand(offset, length):
        return parts
    return [(offset, await asyncio.to_thread(reading.read, offset, length))]
