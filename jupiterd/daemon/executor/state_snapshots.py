"""The last step of a rank that trained alone and died: a checkpoint made of its shared memory.

Owns which ranks get such memory, what they are told of it, and the folder that is made of what they
left there. Doesn't know when they write (`workers.train.checkpoints`), or the form of the memory
(`protocol.shared_snapshot`).
"""

import logging
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupiterd.daemon.executor.device_allocation import RANKS
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.processes.snapshot_memory import SnapshotMemory
from jupiterd.protocol.frames import CheckpointWritten
from jupiterd.protocol.shared_snapshot import SharedSnapshot

log = logging.getLogger(__name__)

PARAM = "snapshot"
"""What the worker is told: the descriptors of the memory, and whose snapshots lie there."""

BEST_FILE = Path("training_state", "best.safetensors")
"""The path of the best weights in a checkpoint's folder."""


class StateSnapshots:
    """The memory of one worker, or none."""

    def __init__(self, order: WorkOrder, memory: SnapshotMemory | None) -> None:
        from jupiterd.cycle.base.plain_text import hash_of  # with pydantic: work alone needs it

        self._memory = memory
        what = {name: order.params.get(name) for name in ("shape", "plan", "round")}
        self._run = f"{order.id} {hash_of(what)}"

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors that the worker inherits."""
        return () if self._memory is None else tuple(self._memory.descriptors)

    @property
    def params(self) -> dict[str, Any]:
        """Return what the worker is told of them."""
        if self._memory is None:
            return {}
        return {PARAM: {"descriptors": list(self.descriptors), "run": self._run}}

    def newest(self) -> SharedSnapshot | None:
        """Return the last whole snapshot, once the worker is gone; None: there is none."""
        return None if self._memory is None else self._memory.newest(self._run)


@contextmanager
def snapshots_of(order: WorkOrder, spool: Path) -> Generator[StateSnapshots]:
    """Open the memory of an order's worker, where it is a rank that trains alone."""
    is_alone = order.params.get("world_size") == 1 and "island" not in order.params
    if order.task not in RANKS or not order.attempt or not is_alone:
        yield StateSnapshots(order, None)
        return
    try:
        memory = SnapshotMemory(spool)
    except OSError as error:
        log.warning("no_snapshots", extra={"order": order.id, "reason": str(error)})
        yield StateSnapshots(order, None)
        return
    with memory:
        yield StateSnapshots(order, memory)


def write_folder(found: SharedSnapshot, spool: Path, tokenizer: Path) -> CheckpointWritten:
    """Make a checkpoint's folder of a snapshot.

    Raises:
        OSError: there is no room.
        ValueError: it names files outside.

    spool: the worker's folder, in which it is made; tokenizer: the worker's input
    """
    described = found.description
    folder = spool / f"kept-{described.progress.step:08}"
    folder.mkdir()
    for path in sorted(tokenizer.iterdir()):
        if path.is_file():
            shutil.copyfile(path, folder / path.name)
    for name, text in described.texts.items():
        _place(folder, name).write_text(text, encoding="utf-8")
    for name in described.tensors:
        with _place(folder, name).open("wb") as file:
            file.write(found.file(name))
    _add_best(spool, described.best, folder)
    return CheckpointWritten(folder.name, described.progress)


def _place(folder: Path, name: str) -> Path:
    """Return the path of a file, in a folder that is made; raises ValueError where it is outside.

    A worker's descriptions are its own, and so are its mistakes.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"a snapshot names a file outside its folder: {name}")
    path.parent.mkdir(exist_ok=True)
    return path


def _add_best(spool: Path, best: str, folder: Path) -> None:
    if best and (source := _place(spool, best)).is_file():
        shutil.copyfile(source, folder / BEST_FILE)
