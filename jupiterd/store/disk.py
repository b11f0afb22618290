"""Writing so that a power cut leaves either the old or the new.

Owns the order of fsync and rename, and what a full disk is called. Doesn't know what is written.
"""

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jupiterd.errors import DiskFullError, StateDirError

READ_ONLY: Final = 0o444
NO_ROOM: Final = "no room left on the disk of the state folder"


def is_no_room(error: OSError) -> bool:
    """Say whether the disk, or somebody's share of it, is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def sync_tree(folder: Path) -> None:
    """Make every file below a folder read-only, and bring files and folders to the disk."""
    for base, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(base) / name
            path.chmod(READ_ONLY)
            sync_file(path)
        sync_file(Path(base))


def put_in_place(draft: Path, place: Path) -> None:
    """Rename a finished folder to where it belongs; one that is there already wins."""
    place.parent.mkdir(exist_ok=True)
    try:
        draft.rename(place)
    except OSError as error:
        if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
            raise
        shutil.rmtree(draft)
    sync_folder(place.parent)
    sync_folder(place.parent.parent)


def exclusively(parent: Path, name: str) -> Path:
    """Make a new folder that nobody else is using; its name begins with `name`."""
    number = 0
    while True:
        folder = parent / f"{name}.{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


@contextmanager
def written() -> Generator[None, None, None]:
    """Name the operating system's errors while the state folder is written.

    Raises:
        DiskFullError: there is no room left.
        StateDirError: anything else that keeps us from writing.
    """
    try:
        yield
    except OSError as error:
        if is_no_room(error):
            raise DiskFullError(NO_ROOM) from error
        raise StateDirError(
            f"{error.filename or 'the state folder'} can't be written: {error.strerror}"
        ) from error


def sync_folder(folder: Path) -> None:
    """Bring to the disk what a folder lists."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Bring to the disk what a file holds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
