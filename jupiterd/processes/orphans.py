"""Workers that a crashed daemon left behind: how they are remembered, and ended at the next start.

Owns one small file for each running worker: its pid and its start time, since a pid alone may by
now be somebody else's. Doesn't know what the workers did. Everything here blocks: call it from a
thread.
"""

import contextlib
import json
import os
import signal
from pathlib import Path

import psutil

SUFFIX = ".pid"
START_TOLERANCE_S = 1.0
"""Start times are told from the boot time, which moves when the clock is set."""

END_TIMEOUT_S = 3.0


def remember(path: Path, pid: int) -> None:
    """Write down a worker that has just started; one that is gone already is left out."""
    with contextlib.suppress(psutil.NoSuchProcess):
        started_s = psutil.Process(pid).create_time()
        path.write_text(json.dumps({"pid": pid, "started_s": started_s}), encoding="utf-8")


def forget(path: Path) -> None:
    """Cross a worker out that has ended."""
    path.unlink(missing_ok=True)


def reap(folder: Path) -> list[int]:
    """End every worker that is written down in `folder` and still runs; return their pids.

    The caller holds the state folder's lock, so none of them has a daemon any more.
    """
    found: list[psutil.Process] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if (process := _worker(path)) is not None:
            found.append(process)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        forget(path)
    psutil.wait_procs(found, timeout=END_TIMEOUT_S)
    return [process.pid for process in found]


def _worker(path: Path) -> psutil.Process | None:
    """Return the process that the file speaks of, if it is that one and leads its own group."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        process = psutil.Process(int(fields["pid"]))
        is_same = abs(process.create_time() - float(fields["started_s"])) <= START_TOLERANCE_S
        is_leader = os.getpgid(process.pid) == process.pid
    except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        return None
    return process if is_same and is_leader else None
