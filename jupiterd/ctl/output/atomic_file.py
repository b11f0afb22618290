"""Files that appear complete or not at all.

Owns the draft next to the file, and the errors if it can't be written. Doesn't know the content, or
whether an existing file may be replaced.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupiterd.errors import DiskFullError, UsageError


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """Yield the path of a draft that replaces the file if the block ends without an error.

    Raises:
        UsageError: the file can't be written.
        DiskFullError: the disk is full.
    """
    from jupiterd.store.disk import NO_ROOM, is_no_room

    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if is_no_room(error):
            raise DiskFullError(NO_ROOM) from error
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # why it can't be written is told already
            draft.unlink(missing_ok=True)
