"""A checkpoint put together from the parts that ranks have written side by side.

Owns placing bytes. Doesn't know tensors, or which parts belong together.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from jupiterd.errors import CorruptArtifactError
from jupiterd.protocol.checkpoint_part import (
    DATA_FILE,
    DESCRIPTION_FILE,
    FILES_DIR,
    CheckpointPart,
    check_whole,
)

_CHUNK_BYTES = 8 << 20


def assemble(parts: Sequence[Path], folder: Path) -> None:
    """Make a checkpoint's folder of the folders of all its parts.

    Raises:
        CorruptArtifactError: they don't make up a whole one.
        OSError: there is no room.
    """
    described = [_described(part) for part in parts]
    sizes = check_whole(described)
    folder.mkdir()
    for part in parts:
        if (part / FILES_DIR).is_dir():
            shutil.copytree(part / FILES_DIR, folder, dirs_exist_ok=True)
    for file, size_bytes in sizes.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as opened:
            opened.truncate(size_bytes)
    for part, description in zip(parts, described, strict=True):
        _place(part, description, folder)


def _described(part: Path) -> CheckpointPart:
    try:
        return CheckpointPart.of_text((part / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptArtifactError(f"{part.name} is no part of a checkpoint") from error


def _place(part: Path, description: CheckpointPart, folder: Path) -> None:
    """Copy a part's bytes to where they belong; extents of one file follow each other mostly."""
    opened: dict[str, BinaryIO] = {}
    try:
        with (part / DATA_FILE).open("rb") as data:
            for extent in description.extents:
                if extent.file not in opened:
                    opened[extent.file] = (folder / extent.file).open("r+b")
                file = opened[extent.file]
                file.seek(extent.offset)
                _copy(data, file, extent.size_bytes)
    finally:
        for file in opened.values():
            file.close()


def _copy(data: BinaryIO, file: BinaryIO, size_bytes: int) -> None:
    while size_bytes:
        chunk = data.read(min(size_bytes, _CHUNK_BYTES))
        if not chunk:
            raise CorruptArtifactError("a part of a checkpoint is shorter than it says")
        file.write(chunk)
        size_bytes -= len(chunk)
