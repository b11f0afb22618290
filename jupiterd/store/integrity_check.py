"""Whether a copy on this disk is still what its id says.

Owns reading it again. Doesn't know when that is called for, or what becomes of a damaged copy.
"""

from pathlib import Path

from blake3 import blake3

from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import CHUNK_BYTES, ManifestFile, artifact_id


def first_damage(store: ArtifactStore, artifact: ArtifactId) -> str:
    """Return the first file that isn't as it was taken in; empty where all are.

    Raises:
        NotFoundError: it isn't held.
    """
    folder, manifest_bytes = store.path(artifact), store.manifest_bytes(artifact)
    if artifact_id(manifest_bytes) != artifact:
        return "its manifest"
    try:
        files = store.manifest(artifact).files
    except JupiterError:
        return "its manifest"
    return next((file.path for file in files if not _is_whole(folder / file.path, file)), "")


def _is_whole(path: Path, expected: ManifestFile) -> bool:
    try:
        if path.stat().st_size != expected.size_bytes:
            return False
        with path.open("rb") as file:
            return all(
                blake3(file.read(CHUNK_BYTES)).hexdigest() == chunk for chunk in expected.chunks
            )
    except OSError:  # gone, or the disk can't read it
        return False
