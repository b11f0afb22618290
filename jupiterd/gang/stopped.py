"""Worker processes that somebody has stopped (SIGSTOP, a debugger): noticed by their own node.

Owns the looking. A stopped rank would hold up its whole gang, and nothing else tells of it: its
process lives, and its node answers.
"""

import asyncio
import sys
from pathlib import Path

import psutil

LOOK_S = 0.25
STOPPED_S = 1.0
"""Stopped for so long, a worker isn't only being looked at."""

_LINUX_STATES = frozenset("Tt")
_STATES = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


async def until_stopped(pid: int) -> None:
    """Return once the process has been stopped for STOPPED_S; never, where it ends before."""
    loop = asyncio.get_running_loop()
    since_s: float | None = None
    while True:
        await asyncio.sleep(LOOK_S)
        if not _is_stopped(pid):
            since_s = None
        elif since_s is None:
            since_s = loop.time()
        elif loop.time() - since_s >= STOPPED_S - LOOK_S:
            return


def _is_stopped(pid: int) -> bool:
    if sys.platform == "linux":
        return _state_on_linux(pid) in _LINUX_STATES
    try:
        return psutil.Process(pid).status() in _STATES
    except psutil.NoSuchProcess:
        return False


def _state_on_linux(pid: int) -> str:
    """Return the letter of proc(5), at a tenth of what psutil takes for it; empty where it ended.

    Four looks a second at each of several processes add up.
    """
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return chr(told[told.rindex(b")") + 2])  # a name in brackets may hold anything before that
