"""The folder in which a piece of work is found again on this node after its worker was killed.

Owns their names and how long they stay. Doesn't know what workers store there, or that there is
any: a worker makes its folder itself.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from jupiterd.daemon.runtime.work_events import WorkOrder

ABANDONED_S = 7 * 86_400.0
"""What nobody came back to for so long was finished elsewhere, or is wanted no more."""


def scratch_of(folder: Path, order: WorkOrder) -> Path:
    """Return the folder of an order's item, the same whoever orders it, and how often.

    With other inputs it is another one: what was begun with them is of no use here.
    """
    named = "\0".join([order.id, *(f"{n}={order.inputs[n]}" for n in sorted(order.inputs))])
    return folder / blake3(named.encode()).hexdigest()[:32]


def remove_scratch(folder: Path, order: WorkOrder) -> None:
    """Remove what an item that is finished has left, if anything."""
    shutil.rmtree(scratch_of(folder, order), ignore_errors=True)


def remove_stale(folder: Path) -> None:
    """Remove what nobody has touched for a week, by the clock of the file system itself."""
    os.utime(folder)
    now_s = folder.stat().st_mtime
    for left in folder.iterdir():
        if now_s - _touched_s(left) > ABANDONED_S:
            shutil.rmtree(left, ignore_errors=True)


def _touched_s(folder: Path) -> float:
    """Return when anything in it was last written; files in it change without the folder.

    What a worker removes meanwhile doesn't count.
    """
    times_s = [0.0]
    with suppress(OSError):
        for path in (folder, *folder.iterdir()):
            with suppress(FileNotFoundError):
                times_s.append(path.stat().st_mtime)
    return max(times_s)
