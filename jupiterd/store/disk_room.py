"""Whether there is room for an artifact that is to be fetched, and how much there is.

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
class DiskRoom:
    """What people allow; 0 sets no limit."""

    quota_bytes: int = 0
    floor_bytes: int = 0

    def check(self, root: Path, size_bytes: int) -> None:
        """Raise DiskFullError where so much more would be more than is allowed."""
        disk = shutil.disk_usage(root)
        floor_bytes = self._floor_of(disk.total)
        if self.floor_bytes and disk.free - size_bytes < floor_bytes:
            raise DiskFullError(
                f"an artifact of {size_bytes >> 20} MiB would leave less than "
                f"{floor_bytes >> 20} MiB free on the disk of the state folder"
            )
        if self.quota_bytes and self.taken_bytes(root) + size_bytes > self.quota_bytes:
            raise DiskFullError(
                f"an artifact of {size_bytes >> 20} MiB doesn't fit into the "
                f"{self.quota_bytes >> 20} MiB that artifacts may take"
            )

    def taken_bytes(self, root: Path) -> int:
        """Return what counts toward the quota: what the files take; 0 where there is none.

        Those with holes take no more than what is written.
        """
        return sum(_blocks(root)) * 512 if self.quota_bytes else 0

    def free_bytes(self, root: Path, taken_bytes: int) -> int:
        """Return how much more there may be beside what is taken already."""
        disk = shutil.disk_usage(root)
        left = [disk.free - self._floor_of(disk.total)]
        if self.quota_bytes:
            left.append(self.quota_bytes - taken_bytes)
        return max(0, min(left))

    def _floor_of(self, total_bytes: int) -> int:
        return min(self.floor_bytes, int(total_bytes * FLOOR_SHARE))


NO_LIMITS: Final = DiskRoom()


def _blocks(root: Path) -> Iterator[int]:
    """Yield what each file takes; one that is put in place or removed meanwhile counts or not."""
    for base, _, names in os.walk(root):
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                yield os.lstat(os.path.join(base, name)).st_blocks  # noqa: PTH118 - many
