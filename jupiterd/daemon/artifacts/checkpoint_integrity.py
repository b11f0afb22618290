"""Checkpoints that are read before training goes on from them: a damaged copy is replaced.

Owns finding damage on this node, and fetching another copy. Doesn't know what a leader records of
it (`damaged_checkpoints`).
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.errors import (
    CorruptArtifactError,
    CorruptCheckpointError,
    CorruptWeightsError,
    NotFoundError,
)
from jupiterd.ids import ArtifactId, short
from jupiterd.store.integrity_check import first_damage

log = logging.getLogger(__name__)

FIRST_WEIGHTS: Final = frozenset({"weights", "adapter"})
"""Inputs of a rank that others made, and that its training begins with."""


async def whole_checkpoint(artifact_cache: ArtifactCache, artifact: ArtifactId) -> Path:
    """Return a checkpoint's folder; a damaged copy is thrown away, and another one is fetched.

    Raises:
        CorruptCheckpointError: nobody in reach has a whole one.
        NotFoundError: nobody in reach has one at all.
    """
    path = await artifact_cache.ensure(artifact)
    if artifact in artifact_cache.known_whole:
        return path
    if damage := await asyncio.to_thread(first_damage, artifact_cache.store, artifact):
        log.warning("checkpoint_damaged", extra={"artifact": short(artifact), "file": damage})
        await asyncio.to_thread(artifact_cache.store.set_aside, artifact)
        path = await _another(artifact_cache, artifact, damage)
    artifact_cache.known_whole.add(artifact)
    return path


async def whole_start(
    artifact_cache: ArtifactCache, inputs: Mapping[str, ArtifactId]
) -> dict[str, str]:
    """Return the folders of what a rank starts from, by their names among the inputs, read again.

    An adapter's checkpoint has the weights beside it that it was trained beside.

    Raises:
        CorruptCheckpointError: it is a checkpoint, and nobody in reach has a whole one.
        CorruptWeightsError: it is the weights to begin with, and nobody in reach has them whole.
        NotFoundError: nobody in reach has it at all.
    """
    found: dict[str, str] = {}
    if (checkpoint := inputs.get("checkpoint")) is not None:
        found["checkpoint"] = str(await whole_checkpoint(artifact_cache, checkpoint))
    try:
        for name in sorted(FIRST_WEIGHTS & inputs.keys()):
            found[name] = str(await whole_checkpoint(artifact_cache, inputs[name]))
    except CorruptCheckpointError as error:
        text = error.message.removeprefix("checkpoint ")
        raise CorruptWeightsError(f"the run can't begin: {text}") from error
    return found


async def _another(artifact_cache: ArtifactCache, artifact: ArtifactId, damage: str) -> Path:
    try:
        return await artifact_cache.ensure(artifact)
    except (NotFoundError, CorruptArtifactError) as error:
        raise CorruptCheckpointError(
            f"checkpoint {short(artifact)} is damaged ({damage}), and nobody in reach has a whole "
            "copy"
        ) from error
