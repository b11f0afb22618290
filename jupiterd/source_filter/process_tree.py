"""The processes that a process has started, and those that they have started.

Owns finding them. Doesn't know what they do. Linux tells a process's children in one small file
each; elsewhere psutil goes through all processes of the machine.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MAX_PROCESSES: Final = 1000

PROC: Final = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below this one, as they are just now.

    Raises:
        psutil.Error: that process is gone, where psutil is asked.
    """
    if sys.platform != "linux" or not (PROC / str(pid) / f"task/{pid}/children").exists():
        import psutil

        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    found: list[int] = []
    to_ask = [pid]
    while to_ask and len(found) < MAX_PROCESSES:
        below = list(_children(to_ask.pop()))
        found += below
        to_ask += below
    return found


def parent(pid: int) -> int:
    """Return which process has started this one, or taken it over; Linux's alone.

    Raises:
        ProcessLookupError: it is gone, or the first of all.
    """
    try:
        told = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        above = int(told.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError) as error:
        raise ProcessLookupError(f"process {pid} is gone") from error
    if not above:
        raise ProcessLookupError(f"nobody has started process {pid}")
    return above


def _children(pid: int) -> Iterator[int]:
    """Yield what each of its threads has started."""
    with suppress(OSError):  # it has ended meanwhile
        for thread in (PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                yield from map(int, (thread / "children").read_text(encoding="ascii").split())
