"""What of an artifact is here already, as part of others that are like it.

Owns finding it and copying it to where a fetch begins: whatever is copied is verified there, chunk
by chunk, so that it needn't be the same. Doesn't know which artifacts are like each other.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jupiterd.store.manifest import Manifest

Other = tuple[Path, Manifest]
"""The folder of an artifact's files, and what they are."""


def seed(files: Path, manifest: Manifest, others: Sequence[Other]) -> None:
    """Fill a new folder with files of others: those of the same content, else of the same name.

    What can't be copied is simply fetched.
    """
    by_content = {
        file.chunks: folder / file.path for folder, other in others for file in other.files
    }
    by_name = {
        file.path: folder / file.path for folder, other in reversed(others) for file in other.files
    }
    for file in manifest.files:
        source = by_content.get(file.chunks) or by_name.get(file.path)
        target = files / file.path
        if source is not None and not target.exists():
            with suppress(OSError):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


def new_bytes(manifest: Manifest, others: Sequence[Manifest]) -> int:
    """Return how much of an artifact is in none of the others, at its place or as a whole file."""
    contents = {file.chunks for other in others for file in other.files}
    places = {
        (chunk.file.path, chunk.offset_in_file, chunk.hash)
        for other in others
        for chunk in other.chunks
    }
    return sum(
        chunk.size_bytes
        for chunk in manifest.chunks
        if chunk.file.chunks not in contents
        and (chunk.file.path, chunk.offset_in_file, chunk.hash) not in places
    )
