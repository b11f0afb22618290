"""Running another program within bounds.

Owns how such a program is started and ended: no file of it grows beyond a size, it dies with this
process, and after its time it is ended with all that it started. Doesn't know which program it is.
It is started by way of `python -m jupiterd.workers.data.bounded_program BYTES PROGRAM ...`.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

_PR_SET_PDEATHSIG = 1

MAX_OUTPUT_CHARS = 1 << 20


def run(
    command: Sequence[str], environment: Mapping[str, str], max_file_bytes: int, timeout_s: float
) -> tuple[int, str, str]:
    """Return the program's status, output and complaints.

    Raises:
        TimeoutError: its time was up.
    """
    with started(command, environment, max_file_bytes, subprocess.PIPE) as process:
        try:
            output, complaints = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise TimeoutError(f"{command[0]} took longer than {timeout_s:g} s") from error
    return process.returncode, _text(output), _text(complaints)


def started(
    command: Sequence[str],
    environment: Mapping[str, str],
    max_file_bytes: int,
    complaints: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start the program in a group of its own; its input and output are pipes."""
    wrapper = (sys.executable, "-m", "jupiterd.workers.data.bounded_program", str(max_file_bytes))
    return subprocess.Popen(
        (*wrapper, *command),
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        start_new_session=True,
    )


def _text(output: bytes) -> str:
    return output[:MAX_OUTPUT_CHARS].decode("utf-8", "replace")


def _become(max_file_bytes: int, command: Sequence[str]) -> None:
    """Be that program, within the bounds."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execvp(command[0], list(command))  # noqa: S606 - a fixed program of our own choice


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
