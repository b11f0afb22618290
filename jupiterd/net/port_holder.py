"""Names the process that listens on a port of this machine, if it is another jupiterd.

Owns the search, which serves an error message only. Best effort: the system reveals nothing about
other users' processes. Import it only when a port is taken.
"""

from pathlib import Path

import psutil

PROGRAM = "jupiterd"


def holder_of(port: int) -> str:
    """Return the holder of a port: another jupiterd with its process id, else "another program"."""
    own = psutil.Process().pid
    for process in psutil.process_iter():
        if process.pid != own and _is_jupiterd(process) and _listens(process, port):
            return f"{PROGRAM} (process {process.pid})"
    return "another program"


def _is_jupiterd(process: psutil.Process) -> bool:
    try:
        begins = process.cmdline()[:3]
    except (psutil.Error, OSError):
        return False
    return any(
        Path(each).name == PROGRAM or each.startswith(f"{PROGRAM}.daemon") for each in begins
    )


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        found = process.net_connections("tcp")
    except (psutil.Error, OSError):
        return False
    return any(
        each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port
        for each in found
    )
