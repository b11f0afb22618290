"""Whether there is room for an artifact that is to be fetched.

Owns the two limits: how much the store may hold, and what of the disk stays free for the machine's
owner. Doesn't know what is worth its room.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.errors import DiskFullError

FLOOR_SHARE: Final = 0.05
"""Of a small disk no more is kept free than this."""


@dataclass(frozen=True)
class Room:
    """What people allow; 0 sets no limit."""

    quota_bytes: int = 0
    floor_bytes: int = 0

    def check(self, root: Path, size_bytes: int) -> None:
        """Raise DiskFullError where so much more would be more than is allowed."""
        disk = shutil.disk_usage(root)
        floor_bytes = min(self.floor_bytes, int(disk.total * FLOOR_SHARE))
        if self.floor_bytes and disk.free - size_bytes < floor_bytes:
            raise DiskFullError(
                f"an artifact of {size_bytes >> 20} MiB would leave less than "
                f"{floor_bytes >> 20} MiB free on the disk of the state folder"
            )
        if self.quota_bytes and _size_bytes(root) + size_bytes > self.quota_bytes:
            raise DiskFullError(
                f"an artifact of {size_bytes >> 20} MiB doesn't fit into the "
                f"{self.quota_bytes >> 20} MiB that artifacts may take"
            )


NO_LIMITS: Final = Room()


def _size_bytes(root: Path) -> int:
    """Return what the files below a folder take; those with holes no more than what is written."""
    return sum(_blocks(root)) * 512


def _blocks(root: Path) -> Iterator[int]:
    """Yield what each file takes; one that is put in place or removed meanwhile counts or not."""
    for base, _, names in os.walk(root):
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                yield os.lstat(os.path.join(base, name)).st_blocks  # noqa: PTH118 - many
