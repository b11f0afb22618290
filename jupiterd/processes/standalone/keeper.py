"""Runs one process of a user's script and makes sure that nothing of it is left behind.

Owns the script's life: the script runs in this process's group, gets the signals that are sent to
the group, and ends when the process that started the keeper is gone, for whatever reason. The
keeper exits with the script's status. Doesn't know what runs.

Standard input is the lifeline: the starter never writes to it, and the system closes it when the
starter is gone. On Linux the system kills the script if the keeper itself is killed.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from types import FrameType

GRACE_S = 5.0
"""Time between SIGTERM and SIGKILL, in s, once the starter is gone."""

CANT_RUN = 127
"""The exit status of shells for a program that doesn't exist."""

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Run a program to its end; return its status, 128 plus the signal's number if one ended it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _leave_it_to_the_script)
    try:
        script = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=_die_with_the_keeper,  # noqa: PLW1509 - there is no other thread yet
        )
    except OSError as error:
        sys.stderr.write(f"{argv[0]} can't be run: {error.strerror}\n")
        return CANT_RUN
    is_orphan = threading.Event()
    threading.Thread(target=_outlive_nobody, args=(is_orphan,), daemon=True).start()
    status = script.wait()
    if is_orphan.is_set():  # no other process would end the script's children
        os.killpg(0, signal.SIGKILL)
    return status if status >= 0 else 128 - status


def _leave_it_to_the_script(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. It is a handler, since the script would inherit an ignored signal."""


def _die_with_the_keeper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _outlive_nobody(is_orphan: threading.Event) -> None:
    """Wait until the starter is gone, then end the whole group, this process included."""
    while os.read(0, 1):
        pass
    is_orphan.set()
    os.killpg(0, signal.SIGTERM)
    threading.Event().wait(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))
