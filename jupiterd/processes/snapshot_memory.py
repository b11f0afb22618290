"""Memory that a worker writes snapshots of its state into, and that outlives the worker.

Owns the two pieces of memory of one worker, which the daemon holds open: they have no name, and go
with the daemon's descriptors. Doesn't know when the worker writes (`workers.train.checkpoints`),
or what becomes of a snapshot. Linux has memory for it; elsewhere it is a file without a name, which
both processes map.
"""

import ctypes
import errno
import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import Self

from jupiterd.protocol.shared_snapshot import SharedSnapshot, found_snapshot

COUNT = 2
"""While one is written, the other has the snapshot before."""

_NAME = "jupiter-snapshot"
_MFD_CLOEXEC = 1
"""As linux/memfd.h has it."""


class SnapshotMemory:
    """That of one worker; use it as a context."""

    def __init__(self, folder: Path) -> None:
        """Make it, of no size yet: the worker knows how much it needs.

        folder: where files lie, where there is no memory without a name
        """
        self.descriptors: list[int] = []
        try:
            for _ in range(COUNT):
                self.descriptors.append(_opened(folder))
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of it."""
        self.close()

    def close(self) -> None:
        """Give the memory back, once the worker is gone; idempotent."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def newest(self, run: str) -> SharedSnapshot | None:
        """Return the last whole snapshot of a run, once its writer is gone; None: there is none."""
        found = [found_snapshot(memory, run) for memory in map(_mapped, self.descriptors)]
        whole = [snapshot for snapshot in found if snapshot is not None]
        return max(whole, key=lambda snapshot: snapshot.sequence, default=None)


def _opened(folder: Path) -> int:
    if sys.platform == "linux":
        return _without_name()
    descriptor, name = tempfile.mkstemp(dir=folder)
    Path(name).unlink()
    return descriptor


def _without_name() -> int:
    """Return a descriptor of Linux's memory without a name.

    Pythons that were built for old systems, such as uv's and conda's, lack the function
    (astral-sh/uv, issue 15081) where the C library has it.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create(_NAME)
    create = getattr(ctypes.CDLL(None, use_errno=True), "memfd_create", None)
    descriptor = -1 if create is None else int(create(_NAME.encode(), _MFD_CLOEXEC))
    if descriptor < 0:
        number = ctypes.get_errno() or errno.ENOSYS
        raise OSError(number, os.strerror(number))
    return descriptor


def _mapped(descriptor: int) -> memoryview:
    """Return what a worker wrote; nothing where it never did."""
    size = os.fstat(descriptor).st_size
    return memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ) if size else b"")
