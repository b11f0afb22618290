"""Warm processes that a test run's programs and workers come from: what they import, once for all.

    python -m tests.support.fork_server FOLDER    (ends when its standard input closes)

Owns one warm process per kind (`warm_process`), started when it is first wanted. Doesn't know what
for: that is between a daemon (`warm_jupiterd`) or a test (`warm_program`) and the warm process.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path

import psutil

from jupiterd.processes.environment import worker_environment

FOLDER_VARIABLE = "JUPITER_TEST_FORK_SERVER"
"""The folder of the sockets, one per kind; daemons that tests start get it by their environment."""

ENVIRONMENTS = "environments.json"
"""Kind -> what its libraries have read when they were loaded."""

PID = "pid"
"""The file that tells which process serves."""

ENGINES = ("torch", "mlx")
"""The kinds of workers and nurseries with an engine."""

DATA = "data"
"""The kind of workers that collect, clean and pack text."""

PROGRAMS = "jupiterd"
"""The kind of jupiterd and jupiterctl; each process shows it in its command line."""

LOOKS = "looks"
"""The kind of what jupiterctl has look at text before a start."""

READERS = "readers"
"""The kind of what parses documents that strangers wrote."""

READING = "jupiterd.workers.data.extract.extraction_process"
"""The module that parses them."""

BACKLOG = 64
_PR_SET_PDEATHSIG = 1
_ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def open_fork_server() -> Generator[Path]:
    """Run one, and yield its folder; whatever was forked there ends with it."""
    with tempfile.TemporaryDirectory(prefix="jupiter-fork-") as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, folder],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for pytest, which ends it
        )
        assert server.stdout is not None
        assert server.stdout.readline(), "the fork server has ended"
        try:
            yield Path(folder)
        finally:
            server.communicate()


def jupiterd_command() -> tuple[str | Path, ...]:
    """Return what starts a daemon: one whose workers come from the test run's server, if any."""
    if FOLDER_VARIABLE in os.environ:
        return (sys.executable, "-P", _ROOT / "tests" / "support" / "warm_jupiterd.py")
    return (Path(sys.executable).with_name("jupiterd"),)


def forked_for(daemon: int) -> list[psutil.Process]:
    """Return the workers of a daemon, and what they have started, that were forked here."""
    found: list[psutil.Process] = []
    for process in _server_s_children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended since
            if process.name() == child_of(daemon):
                found += process.children(recursive=True)
    return found


def child_of(daemon: int) -> str:
    """Return the name of the processes whose children are a daemon's workers."""
    return f"of-{daemon}"


def _server_s_children() -> list[psutil.Process]:
    """Return all processes below the test run's server, which another process may have started."""
    if (folder := os.environ.get(FOLDER_VARIABLE)) is None:
        return []
    pid = int(Path(folder, PID).read_text())
    return psutil.Process(pid).children(recursive=True)


def end_with_parent() -> None:
    """Have Linux kill this process when the one that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(folder: Path) -> None:
    """Start each kind when it is first asked for, until nobody wants any more."""
    end_with_parent()
    environments = {
        kind: worker_environment("train", {"engine": kind, "threads": 1}) for kind in ENGINES
    }
    environments[DATA] = worker_environment("collect", {"threads": 1})
    # As a daemon does before it imports grpc, whose log isn't ours.
    environments[PROGRAMS] = {**os.environ, "GRPC_VERBOSITY": "NONE"}
    environments |= {kind: dict(os.environ) for kind in (LOOKS, READERS)}
    (folder / PID).write_text(str(os.getpid()))
    (folder / ENVIRONMENTS).write_text(json.dumps(environments))
    waiting = {_listening(folder / kind): kind for kind in environments}
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([sys.stdin, *waiting], [], [])
        if sys.stdin in readable:
            return
        for listener in readable:
            kind = waiting.pop(listener)
            with listener:
                _start(kind, environments[kind], listener.fileno())


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(BACKLOG)
    return listener


def _start(kind: str, environment: Mapping[str, str], listener: int) -> None:
    subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_process", kind, str(listener)],
        env=environment,
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(listener,),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)
