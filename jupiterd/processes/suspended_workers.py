"""Worker processes that somebody has stopped (SIGSTOP, a debugger): noticed by their own node.

Owns the looking. A stopped rank would hold up its whole gang, and nothing else tells of it: its
process lives, and its node answers.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import psutil

LOOK_S = 0.25
STOPPED_S = 1.0
"""Stopped for so long, a worker isn't only being looked at."""

MAX_STAT_BYTES = 1024

_LINUX_STATES = frozenset("Tt")
_STATES = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


async def until_stopped(pid: int) -> None:
    """Return once the process has been stopped for STOPPED_S; never, where it ends before."""
    loop = asyncio.get_running_loop()
    since_s: float | None = None
    with _looking_at(pid) as is_stopped:
        while True:
            await asyncio.sleep(LOOK_S)
            if not is_stopped():
                since_s = None
            elif since_s is None:
                since_s = loop.time()
            elif loop.time() - since_s >= STOPPED_S - LOOK_S:
                return


@contextmanager
def _looking_at(pid: int) -> Generator[Callable[[], bool]]:
    """Yield what says whether a process is stopped just now; one that has ended never is."""
    if sys.platform != "linux":
        yield lambda: _is_stopped(pid)
        return
    try:
        stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        yield lambda: False
        return
    try:
        yield lambda: _state(stat) in _LINUX_STATES
    finally:
        os.close(stat)


def _is_stopped(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in _STATES
    except psutil.NoSuchProcess:
        return False


def _state(stat: int) -> str:
    """Return the letter of proc(5); empty where the process has ended.

    Four looks a second at each of several processes add up: this one takes a tenth of psutil's,
    and the file, once open, stays that of this process, whoever has its number later.
    """
    try:
        content = os.pread(stat, MAX_STAT_BYTES, 0)
    except OSError:
        return ""
    return chr(
        content[content.rindex(b")") + 2]
    )  # a name in brackets may hold anything before that
