"""A process that has imported all that an engine needs, and from which workers are forked.

Owns the imports, the forking, and telling the daemon how its children end. Doesn't know what the
children do: each is an ordinary worker from there on. It computes nothing itself, so that it has
one thread and no device, and a fork of it is whole: the daemon starts it with variables that keep
libraries to one thread, and a worker sets its own number. Linux only; elsewhere workers start cold.

    python -m jupiterd.workers.forkserver KIND, with the link (SOCK_SEQPACKET) in the environment
    in   msgpack {environment, numbers} and descriptors: link, output, then what `numbers` names
    out  {ready: true} · {pid} or {refused: why}, for each order · {pid, status} when it has ended
"""

import ctypes
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgpack

from jupiterd.gc_pause import collector_paused
from jupiterd.protocol.frames import LINK_FD_VARIABLE
from jupiterd.workers import thread_share

MODELS = "jupiterd.workers.train.architectures.skeleton:load_models"
TENSORBOARD = "jupiterd.workers.train.report.tensorboard:load_library"

PRELOADED: Mapping[str, Sequence[str]] = {
    "torch": (
        "jupiterd.workers.train.torch.torch_rank",
        "jupiterd.workers.answers.evaluation",
        "jupiterd.workers.generate.samples",
        "jupiterd.workers.proxies.student",
        MODELS,
        TENSORBOARD,
    ),
    "mlx": (
        "jupiterd.workers.train.mlx.mlx_rank",
        "jupiterd.workers.train.mlx.mlx_engine",
        "jupiterd.workers.train.rank_training",
        MODELS,
        TENSORBOARD,
    ),
}
"""Kind -> the modules of its workers; a function after a colon fills what they share."""

_THREADS = Path("/proc/self/task")
MAX_ORDER_BYTES = 1 << 16
MAX_DESCRIPTORS = 8
_PR_SET_PDEATHSIG = 1
_ASIDE = 512
"""Descriptors that are to get certain numbers are moved beyond this one first."""


def main(kind: str) -> None:
    """Import, say so, and fork a worker for each order until the daemon closes the link."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    link = socket.socket(fileno=int(os.environ.pop(LINK_FD_VARIABLE)))
    own = frozenset(os.environ)
    with collector_paused():
        starting = [name for name in PRELOADED[kind] if _starts_threads(name)]
    wake = _wake_at_children()
    _send(link, {"ready": True})
    while True:
        readable, _, _ = select.select([link, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            _report_ended(link)
        if link in readable and not _forked(link, wake, own, starting):
            return


def preload(name: str) -> None:
    """Import a module, and call the function of it that stands after a colon."""
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    if function:
        getattr(imported, function)()


def _starts_threads(name: str) -> bool:
    """Preload, and return whether that started threads."""
    before = _threads()
    preload(name)
    return _threads() > before


def _threads() -> int:
    return sum(1 for _ in _THREADS.iterdir())


def _forked(link: socket.socket, wake: int, own: frozenset[str], starting: Sequence[str]) -> bool:
    """Take one order; return False where the daemon has gone.

    Args:
        link: to the daemon.
        wake: what is read once a child has ended.
        own: the names of the variables that this process was started with.
        starting: what started threads as it was imported.
    """
    data, descriptors, _, _ = socket.recv_fds(link, MAX_ORDER_BYTES, MAX_DESCRIPTORS)
    if not data:
        return False
    order = cast("dict[str, Any]", msgpack.unpackb(data))
    threads = _threads()
    if threads > 1:  # the others wouldn't be in the child, and what they held would stay locked
        since = f", started by importing {', '.join(starting)}" if starting else ""
        _send(link, {"refused": f"it has {threads} threads{since}"})
    elif pid := os.fork():
        _send(link, {"pid": pid})
    else:
        link.close()
        os.close(wake)
        for name in own - set(order["environment"]):
            os.environ.pop(name, None)
        _become(order["environment"], order["numbers"], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return True


def _become(
    environment: Mapping[str, str], numbers: Sequence[int], descriptors: Sequence[int]
) -> None:
    """Be a worker, in a session of its own; never return."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        link, output, *others = [_aside(descriptor) for descriptor in descriptors]
        for standard in (1, 2):
            os.dup2(output, standard)
        for number, descriptor in zip(numbers, others, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(output)
        os.environ.update(environment)
        os.environ[LINK_FD_VARIABLE] = str(link)
        thread_share.follow()
        from jupiterd.workers.__main__ import main as work

        status = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - it mustn't go on as the process it was forked from
        traceback.print_exc()
    finally:
        os._exit(status)


def _aside(descriptor: int) -> int:
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ASIDE)
    os.close(descriptor)
    return moved


def _wake_at_children() -> int:
    """Return a descriptor that can be read once a child has ended."""
    wake, write = os.pipe()
    os.set_blocking(write, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(write)
    return wake


def _report_ended(link: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        _send(link, {"pid": pid, "status": os.waitstatus_to_exitcode(status)})


def _send(link: socket.socket, fields: Mapping[str, Any]) -> None:
    link.sendall(cast("bytes", msgpack.packb(dict(fields))))


if __name__ == "__main__":
    main(sys.argv[1])
