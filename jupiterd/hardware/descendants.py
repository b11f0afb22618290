"""The memory of everything that a process has started.

Owns finding those processes. Doesn't know what they do. Linux tells a process's children in one
small file each; elsewhere psutil goes through all processes of the machine.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

MAX_PROCESSES: Final = 1000

_PROC: Final = Path("/proc")


def descendants_rss_bytes(pid: int) -> int:
    """Return the resident memory of all processes below this one, in sum; 0 where there are none.

    Raises:
        psutil.Error: that process is gone.
    """
    found = 0
    for below in descendants(pid):
        with suppress(psutil.Error):  # it has ended meanwhile
            found += psutil.Process(below).memory_info().rss
    return found


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below this one, as they are just now."""
    if sys.platform != "linux" or not (_PROC / str(pid) / f"task/{pid}/children").exists():
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    found: list[int] = []
    to_ask = [pid]
    while to_ask and len(found) < MAX_PROCESSES:
        below = list(_children(to_ask.pop()))
        found += below
        to_ask += below
    return found


def _children(pid: int) -> Iterator[int]:
    """Yield what each of its threads has started."""
    with suppress(OSError):  # it has ended meanwhile
        for thread in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                yield from map(int, (thread / "children").read_text(encoding="ascii").split())
