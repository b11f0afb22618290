"""Ends the workers that a crashed daemon left behind, at the next start.

Owns one small file for each running worker: its process id and its start time, since another
process may have the same id by then. Doesn't know what the workers did. All functions block: call
them from a thread.
"""

import contextlib
import json
import os
import signal
from pathlib import Path

import psutil

SUFFIX = ".pid"
START_TOLERANCE_S = 1.0
"""In s: start times are computed from the boot time, which moves when the clock is set."""

END_TIMEOUT_S = 3.0


def remember(path: Path, pid: int) -> None:
    """Record a worker that has just started; do nothing if it has ended already."""
    with contextlib.suppress(psutil.NoSuchProcess):
        started_s = psutil.Process(pid).create_time()
        path.write_text(json.dumps({"pid": pid, "started_s": started_s}), encoding="utf-8")


def forget(path: Path) -> None:
    """Delete the record of a worker that has ended."""
    path.unlink(missing_ok=True)


def reap(folder: Path) -> list[int]:
    """Kill every recorded worker in `folder` that still runs; return their process ids.

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
    """Return the process of this record, if it is the same one and leads its own group."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        process = psutil.Process(int(fields["pid"]))
        is_same = abs(process.create_time() - float(fields["started_s"])) <= START_TOLERANCE_S
        is_leader = os.getpgid(process.pid) == process.pid
    except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        return None
    return process if is_same and is_leader else None
