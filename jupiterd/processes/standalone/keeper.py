"""Stands between Jupiter and one process of somebody's script, and leaves nothing of it behind.

Owns the script's life: it runs in this process's group, gets the signals that are sent to the
group, and ends when whoever started the keeper is gone, however it went. Its status becomes the
keeper's. Doesn't know what runs.

The standard input is the lifeline: it is never written to, and closed when the starter is gone.
On Linux the script is killed by the system where the keeper itself is killed.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from types import FrameType

GRACE_S = 5.0
"""Between SIGTERM and SIGKILL, where the starter is gone."""

CANT_RUN = 127
"""The status that shells give to a program that isn't there."""

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Run a program to its end; return its status, 128 and the signal's number where it was one."""
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
    if is_orphan.is_set():  # nobody is left to end what the script has started
        os.killpg(0, signal.SIGKILL)
    return status if status >= 0 else 128 - status


def _leave_it_to_the_script(_number: int, _frame: FrameType | None) -> None:
    """Take a signal and go on; a handler, since what is ignored would be ignored there too."""


def _die_with_the_keeper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _outlive_nobody(is_orphan: threading.Event) -> None:
    """Wait for the starter's end, then end the whole group, this process included."""
    while os.read(0, 1):
        pass
    is_orphan.set()
    os.killpg(0, signal.SIGTERM)
    threading.Event().wait(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))
