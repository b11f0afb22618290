"""One small file of an artifact that others hold, read without fetching the rest.

Owns asking one source after the other and checking what comes. Writes nothing.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from blake3 import blake3

from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId
from jupiterd.ports import ArtifactSource
from jupiterd.store.manifest import Chunk, artifact_id, decode

TIMEOUT_S: Final = 5.0
"""Of one source."""


async def file_of(
    artifact: ArtifactId,
    path: str,
    sources: Sequence[ArtifactSource],
    most_bytes: int,
    timeout_s: float = TIMEOUT_S,
) -> bytes | None:
    """Return a file of at most so many bytes; None where no source gives it as it must be."""
    for source in sources:
        with suppress(JupiterError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                data = await _from(source, artifact, path, most_bytes)
            if data is not None:
                return data
    return None


async def _from(
    source: ArtifactSource, artifact: ArtifactId, path: str, most_bytes: int
) -> bytes | None:
    manifest_bytes = await source.manifest(artifact)
    if manifest_bytes is None or artifact_id(manifest_bytes) != artifact:
        return None
    chunks = [chunk for chunk in decode(manifest_bytes).chunks if chunk.file.path == path]
    size_bytes = sum(chunk.size_bytes for chunk in chunks)
    if not 0 < size_bytes <= most_bytes:
        return None
    data = bytearray()
    async for _, piece in source.fetch(artifact, [(chunks[0].offset, size_bytes)]):
        data += piece
        if len(data) > size_bytes:
            return None
    return bytes(data) if all(_is_whole(chunk, data) for chunk in chunks) else None


def _is_whole(chunk: Chunk, data: bytearray) -> bool:
    begin = chunk.offset_in_file
    return blake3(data[begin : begin + chunk.size_bytes]).hexdigest() == chunk.hash
