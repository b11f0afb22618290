"""Snapshots of a rank's state in memory that its daemon holds: what they hold survives the rank.

Owns where each tensor lies there, the copying, and the turns of the two memories. The bytes are
those of a checkpoint's files, so that the daemon writes the folder without knowing tensors. Doesn't
know when a snapshot is due (`rank_snapshots`), or the form of the memory
(`protocol.shared_snapshot`).
"""

import errno
import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.base.snapshot_pace import COPIES
from jupiterd.errors import Bug
from jupiterd.protocol.shared_snapshot import (
    MAX_DESCRIPTION_BYTES,
    PAGE_BYTES,
    Description,
    data_offset,
    seal,
    wipe,
)
from jupiterd.workers.tensor_file import file_head
from jupiterd.workers.train.checkpoints.checkpoint import OPTIMIZER_FILE, STATE_DIR
from jupiterd.workers.train.checkpoints.checkpoint_format import format_of
from jupiterd.workers.training_engine import Tensors, TrainingEngine

MOMENTS_FILE = f"{STATE_DIR}/{OPTIMIZER_FILE}"

DATA_OFFSET = data_offset(MAX_DESCRIPTION_BYTES)

Arrays = dict[str, NDArray[np.float32]]

Shapes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class FilePlan:
    """One file of tensors in the data: what stands before the tensors, and where each of them."""

    head: bytes
    shapes: Shapes
    offsets: Mapping[str, int]
    """Of each tensor, in bytes from the begin of the file."""

    @classmethod
    def of(cls, shapes: Shapes) -> "FilePlan":
        """Lay out a file."""
        head, offsets = file_head(shapes)
        return cls(head, shapes, offsets)

    @property
    def size_bytes(self) -> int:
        """Return the length of the file."""
        values = sum(4 * int(np.prod(shape)) for shape in self.shapes.values())
        return len(self.head) + values

    def arrays(self, memory: memoryview) -> Arrays:
        """Write the head, and return the places of the tensors; memory: the file's bytes."""
        memory[: len(self.head)] = self.head
        return {
            name: np.frombuffer(
                memory, np.float32, int(np.prod(shape)), self.offsets[name]
            ).reshape(tuple(shape))
            for name, shape in self.shapes.items()
        }


@dataclass(frozen=True)
class Layout:
    """Both files of a model's state, one after the other in the data."""

    files: Mapping[str, FilePlan]
    """By their paths in the checkpoint's folder."""

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Return where each file lies: (offset, length); each begins on a page."""
        sizes = [plan.size_bytes for plan in self.files.values()]
        begins = accumulate((_on_page(size) for size in sizes), initial=0)
        return dict(zip(self.files, zip(begins, sizes, strict=False), strict=True))

    @property
    def size_bytes(self) -> int:
        """Return the length of the data."""
        return sum(_on_page(plan.size_bytes) for plan in self.files.values())


class Slot:
    """One of the two memories, mapped, with the places of all tensors."""

    def __init__(self, descriptor: int, layout: Layout) -> None:
        """Give it its size.

        Raises:
            OSError: there is no room.
        """
        size = DATA_OFFSET + layout.size_bytes
        _grow(descriptor, size)
        self.memory = memoryview(mmap.mmap(descriptor, size))
        self.files: dict[str, Arrays] = {}
        for path, (offset, length) in layout.places.items():
            begin = DATA_OFFSET + offset
            self.files[path] = layout.files[path].arrays(self.memory[begin : begin + length])


class SharedSnapshots:
    """Those of one rank in one attempt."""

    def __init__(self, descriptors: Sequence[int], engine: TrainingEngine) -> None:
        """Take the memory, which the daemon has opened.

        Raises:
            OSError: there is no room.
        """
        self._engine = engine
        weights, moments = engine.weights(), engine.moments()
        self._form = format_of(engine)
        in_files = self._form.in_files(weights)
        self._names = _names_in_files(weights, in_files)
        """Name of a weight in the file -> ours; None where files hold them in other pieces."""
        plans = {self._form.file: in_files, MOMENTS_FILE: moments}
        self._layout = Layout({p: FilePlan.of(_shapes(held)) for p, held in plans.items()})
        self._places = self._layout.places
        self._slots = [Slot(descriptor, self._layout) for descriptor in descriptors]
        self._sequence = 0
        self._thread: threading.Thread | None = None
        self._copied = threading.Event()
        self._copied.set()
        self._failure: Exception | None = None

    def take(self, description: Description) -> None:
        """Copy the state as it is after a step; a GPU's is copied beside the next gradients.

        description: of the state; where its tensors lie is added
        """
        self._wait()
        self._sequence += 1
        encoded = replace(description, tensors=self._places).encoded()
        if len(encoded) > MAX_DESCRIPTION_BYTES:
            raise Bug(f"the description of a snapshot takes {len(encoded)} bytes")
        slot = self._slots[self._sequence % len(self._slots)]
        work = partial(self._write, slot, self._sequence, encoded)
        if not self._engine.copies_beside:
            work()
            return
        self._copied.clear()
        self._thread = threading.Thread(target=self._write_beside, args=(work,), name="snapshot")
        self._thread.start()

    def settle(self) -> None:
        """Wait until everything is copied; the state may change then."""
        self._copied.wait()

    def _wait(self) -> None:
        """Wait until the last one is whole; raises what went wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _write_beside(self, work: "partial[None]") -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - of a thread: told where training sees it
            self._failure = error
        finally:
            self._copied.set()

    def _write(self, slot: Slot, sequence: int, description: bytes) -> None:
        wipe(slot.memory)
        self._copy_into(slot)
        self._copied.set()
        seal(slot.memory, sequence, description, DATA_OFFSET, self._layout.size_bytes)

    def _copy_into(self, slot: Slot) -> None:
        weights, moments = slot.files[self._form.file], slot.files[MOMENTS_FILE]
        if self._names is not None:
            named = {ours: weights[in_file] for in_file, ours in self._names.items()}
            self._engine.copy_state(named, moments)
            return
        self._engine.copy_state({}, moments)
        for name, values in self._form.in_files(self._engine.weights()).items():
            np.copyto(weights[name], values)


def _names_in_files(weights: Tensors, in_files: Tensors) -> dict[str, str] | None:
    """Return name in the file -> our name, where files hold just our tensors; None elsewhere."""
    ours = {_place(values): name for name, values in weights.items()}
    named = {name: ours.get(_place(values)) for name, values in in_files.items()}
    found = {name: known for name, known in named.items() if known is not None}
    return found if len(found) == len(weights) == len(in_files) else None


def _place(values: NDArray[np.float32]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return int(values.__array_interface__["data"][0]), values.shape, values.strides


def _shapes(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in tensors.items()}


def _on_page(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def _grow(descriptor: int, size: int) -> None:
    """Give memory its size, and all of its pages where the system can: a page fault takes time.

    Elsewhere it is a file with holes: to fill one on a full disk ends the process (SIGBUS).
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    disk = os.fstatvfs(descriptor)
    if disk.f_bavail * disk.f_frsize < COPIES * size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(descriptor, size)
