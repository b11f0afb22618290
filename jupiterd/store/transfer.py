"""Bringing an artifact here from whoever has it, or is getting it too.

Owns what a fetch begins and ends with: one at a time for each artifact, the manifest, and putting
it in place. Doesn't know how chunks are gathered (`gathering`), or what a source is made of.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from jupiterd.errors import (
    CorruptArtifactError,
    JupiterError,
    NotFoundError,
    PeerUnreachableError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.ports import ArtifactSource
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.gathering import Gathering
from jupiterd.store.manifest import artifact_id

STALL_S: Final = 20.0
"""A source that sends nothing for so long is given up."""

_log = logging.getLogger(__name__)


def _nobody_else(_node: NodeId) -> ArtifactSource | None:
    return None


async def fetch(
    store: ArtifactStore,
    artifact: ArtifactId,
    sources: Sequence[ArtifactSource],
    stall_s: float = STALL_S,
    meet: Callable[[NodeId], ArtifactSource | None] = _nobody_else,
    like: Iterable[ArtifactId] = (),
) -> None:
    """Make `store` hold the artifact; whoever asks for the same one meanwhile waits for the first.

    What was fetched before a break stays on disk and isn't fetched again. `meet` turns a node that
    fetches it as well into one more source; what is the same in those it is `like` isn't fetched.

    Raises:
        NotFoundError: no source has it.
        JupiterError: every source that has it failed; this is the last one's failure.
        DiskFullError, StateDirError: it can't be written here.
    """
    async with store.arrival(artifact):
        if await asyncio.to_thread(store.holds, artifact):
            return
        manifest_bytes, able = await _manifest_from_any(artifact, sources, stall_s)
        partial = await asyncio.to_thread(store.begin, manifest_bytes, like)
        with store.grown(partial, manifest_bytes) as growth:
            await Gathering(artifact, partial, growth, stall_s, meet).run(able)
            await asyncio.to_thread(partial.commit)


async def _manifest_from_any(
    artifact: ArtifactId, sources: Sequence[ArtifactSource], stall_s: float
) -> tuple[bytes, Sequence[ArtifactSource]]:
    """Return the manifest, and the sources that may have the rest: those before had none."""
    failure: JupiterError | None = None
    for number, source in enumerate(sources):
        try:
            manifest_bytes = await _manifest(source, artifact, stall_s)
        except JupiterError as error:
            _log.warning(
                "artifact source failed source=%s id=%s error=%s", source.name, artifact, error
            )
            failure = error
            continue
        if manifest_bytes is not None:
            return manifest_bytes, sources[number:]
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
