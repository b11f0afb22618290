"""A process that has imported what programs of one kind need; tests' processes are forked from it.

    python -m tests.support.warm_process KIND LISTENER

Owns the imports, and giving a fork what a process that was started cold has: the network, working
folder, environment and descriptors that are wanted, and a session of its own. It ends with whoever
asked for it: a daemon, or a test. What differs: its libraries were imported before it began, what
is registered for its exit isn't run, and it is no child of whoever asked, but of a process named
after that one (`child_of`), which reports how it ended.

    in   (SOCK_SEQPACKET) msgpack {module, arguments, environment, numbers} and descriptors: the
         network, the working folder, the output, then what `numbers` names
    out  {pid} with a descriptor of the process, and {status} when it has ended
"""

import ctypes
import fcntl
import gc
import importlib
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack

from jupiterd.gc_pause import collector_paused
from jupiterd.workers.__main__ import TASKS
from jupiterd.workers.forkserver import PRELOADED, preload
from tests.support.fork_server import (
    DATA,
    FOLDER_VARIABLE,
    LOOKS,
    PROGRAMS,
    READERS,
    READING,
    child_of,
    end_with_parent,
)
from tests.support.warm_children import start_readers_warm
from tests.support.warm_start import WITH_TEXT

PACKAGES: Mapping[str, Sequence[str]] = {PROGRAMS: ("jupiterd.daemon", "jupiterd.ctl")}
"""Kind -> the packages that its programs take their modules from, most of them when first used."""

BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""OpenBLAS reads it once; where it is absent, OMP_NUM_THREADS counts."""

LOOKING = (
    "jupiterd.workers.data.survey.split_preview",
    "jupiterd.workers.data.survey.survey_sources",
)
"""What looks at text."""

STARTS_READERS = frozenset({DATA, LOOKS})
"""The kinds whose processes have documents read by others."""

RUN = ("jupiterd.workers.__main__", "jupiterd.workers.forkserver", *LOOKING, READING)
"""Whoever is to be one of these runs it from its first line."""

MAX_ORDER_BYTES = 1 << 16
MAX_DESCRIPTORS = 16
_ASIDE = 512
"""Descriptors that are to get certain numbers are moved beyond this one first."""

_PR_SET_NAME = 15
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def main(kind: str, listener: socket.socket) -> None:
    """Import, then fork for whoever asks."""
    folder = str(Path(listener.getsockname()).parent)
    more = {FOLDER_VARIABLE: folder} if kind in STARTS_READERS else {}
    end_with_parent()
    with collector_paused():
        import_all(kind)
    for module in RUN:
        sys.modules.pop(module, None)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    assert threads == 1, f"{threads} threads: what the others hold would stay locked in a fork"
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            try:
                serve(connection, more)
            finally:
                os._exit(0)
        connection.close()


def import_all(kind: str) -> None:
    """Import what processes of a kind need, now or later."""
    for package in PACKAGES.get(kind, ()):
        folders = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(folders, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    if kind not in {PROGRAMS, READERS}:
        import_numpy()
    for name in preloaded(kind):
        preload(name)
    if kind in STARTS_READERS:
        start_readers_warm()


def import_numpy() -> None:
    """Import numpy without the threads that its OpenBLAS starts at that; forks set their own."""
    given = os.environ.get(BLAS_THREADS)
    os.environ[BLAS_THREADS] = "1"
    importlib.import_module("numpy")
    del os.environ[BLAS_THREADS]
    if given is not None:
        os.environ[BLAS_THREADS] = given


def preloaded(kind: str) -> Sequence[str]:
    """Return what else is imported for a kind."""
    if kind == DATA:
        return [TASKS[task] for task in WITH_TEXT]
    if kind == READERS:
        return (READING, "jupiterd.workers.data.extractors.html")
    return LOOKING if kind == LOOKS else PRELOADED.get(kind, ())


def serve(connection: socket.socket, more: Mapping[str, str]) -> None:
    """Fork what a process asks for, and tell it how that ends; end with that process.

    Args:
        connection: to whoever asks.
        more: variables that the fork gets beside those which are wanted.
    """
    end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _LIBC.prctl(_PR_SET_NAME, child_of(_peer(connection)).encode())
    data, descriptors, _, _ = socket.recv_fds(connection, MAX_ORDER_BYTES, MAX_DESCRIPTORS)
    if not data:
        return
    begun, beginning = os.pipe()
    pid = os.fork()
    if not pid:
        connection.close()
        _become(msgpack.unpackb(data), descriptors, more)
    for descriptor in (*descriptors, beginning):
        os.close(descriptor)
    os.read(begun, 1)  # it ends once the fork has what it is to have, and nothing else
    ended = os.pidfd_open(pid)
    socket.send_fds(connection, [msgpack.packb({"pid": pid})], [ended])
    readable, _, _ = select.select([connection, ended], [], [])
    if ended in readable:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(msgpack.packb({"status": status}))


def _peer(connection: socket.socket) -> int:
    """Return the pid of the process at the other end."""
    size = struct.calcsize("3i")
    pid, _, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return pid


def _become(order: Mapping[str, Any], descriptors: Sequence[int], more: Mapping[str, str]) -> None:
    """Run a module as `python -m` does; never return."""
    status = 1
    try:
        end_with_parent()
        os.setsid()
        network, folder, *others = [_aside(descriptor) for descriptor in descriptors]
        _enter(network)
        os.fchdir(folder)
        os.environ.clear()
        os.environ.update(order["environment"] | more)
        _take(others, order["numbers"])
        sys.argv = [order["module"], *order["arguments"]]
        status = _run(order["module"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - it mustn't go on as the process it was forked from
        traceback.print_exc()
    finally:
        os._exit(status)


def _enter(network: int) -> None:
    """Be in a network, which takes root unless it is this process's own."""
    is_own = os.path.sameopenfile(network, os.open("/proc/self/ns/net", os.O_RDONLY))
    if not is_own and _LIBC.setns(network, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "the daemon's network can't be entered")


def _take(descriptors: Sequence[int], numbers: Sequence[int]) -> None:
    """Have the output for standard output and error, the others by their numbers, and no more."""
    output, *others = descriptors
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for standard in (1, 2):
        os.dup2(output, standard)
    for number, descriptor in zip(numbers, others, strict=True):
        os.dup2(descriptor, number)
    kept = 2
    for number in sorted(number for number in numbers if number > kept):
        os.closerange(kept + 1, number)
        kept = number
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _run(module: str) -> int:
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _aside(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ASIDE)
    os.close(descriptor)
    return moved


if __name__ == "__main__":
    main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
