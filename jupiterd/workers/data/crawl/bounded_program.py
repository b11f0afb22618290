"""Running another program within bounds.

Owns how such a program is started and ended: no file of it grows beyond a size, it dies with this
process, and after its time it is ended with all that it started. Doesn't know which program it is.
It is started by way of `python -m jupiterd.workers.data.crawl.bounded_program BYTES PROGRAM ...`.
"""

import ctypes
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO

from jupiterd.errors import Bug

_PR_SET_PDEATHSIG = 1

MAX_OUTPUT_BYTES = 1 << 20

_PIECE_BYTES = 1 << 16


def run(
    command: Sequence[str], environment: Mapping[str, str], max_file_bytes: int, timeout_s: float
) -> tuple[int, str, str]:
    """Return the program's status, and the beginnings of its output and complaints.

    Raises:
        TimeoutError: its time was up.
    """
    with started(command, environment, max_file_bytes, subprocess.PIPE) as process:
        try:
            output, complaints = _said(process, timeout_s)
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise TimeoutError(f"{command[0]} took longer than {timeout_s:g} s") from error
    return process.returncode, output, complaints


def started(
    command: Sequence[str],
    environment: Mapping[str, str],
    max_file_bytes: int,
    complaints: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start the program in a group of its own; its input and output are pipes."""
    wrapper = (
        sys.executable,
        "-m",
        "jupiterd.workers.data.crawl.bounded_program",
        str(max_file_bytes),
    )
    return subprocess.Popen(
        (*wrapper, *command),
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        start_new_session=True,
    )


def _said(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[str, str]:
    """Return the beginnings of its output and complaints once it has ended; the rest isn't kept."""
    end_s = time.monotonic() + timeout_s
    output, complaints = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for pipe, said in ((process.stdout, output), (process.stderr, complaints)):
            selector.register(_open(pipe), selectors.EVENT_READ, said)
        _open(process.stdin).close()
        while selector.get_map():
            if time.monotonic() >= end_s:
                raise TimeoutError
            for key, _ in selector.select(max(0.0, end_s - time.monotonic())):
                piece = os.read(key.fd, _PIECE_BYTES)
                key.data.extend(piece[: MAX_OUTPUT_BYTES - len(key.data)])
                if not piece:
                    selector.unregister(key.fileobj)
    process.wait(max(0.0, end_s - time.monotonic()))
    return output.decode("utf-8", "replace"), complaints.decode("utf-8", "replace")


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise Bug("a program was started without its pipes")
    return pipe


def _become(max_file_bytes: int, command: Sequence[str]) -> None:
    """Be that program, within the bounds."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execvp(command[0], list(command))  # noqa: S606 - a fixed program of our own choice


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
