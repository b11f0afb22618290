"""Detects that somebody stopped a worker process (SIGSTOP, a debugger).

Owns the polling. A stopped rank blocks its whole gang, and nothing else reveals it: its process
lives, and its node answers.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import psutil

LOOK_S = 0.25
STOPPED_S = 1.0
"""A worker that is stopped this long, in s, isn't merely being inspected."""

MAX_STAT_BYTES = 1024

_LINUX_STATES = frozenset("Tt")
_STATES = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


async def until_stopped(pid: int) -> None:
    """Return once the process has been stopped for `STOPPED_S`; never if it ends before."""
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
    """Yield a function that tells whether a process is stopped now; False once it has ended."""
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
    """Return the state letter of proc(5); empty if the process has ended.

    This costs a tenth of psutil's call, which matters at four looks a second for each of several
    processes. The open file stays that of this process, even if another gets its id later.
    """
    try:
        content = os.pread(stat, MAX_STAT_BYTES, 0)
    except OSError:
        return ""
    return chr(
        content[content.rindex(b")") + 2]
    )  # the process name before it may contain anything, even brackets
