"""Starting workers from the test run's fork server, in place of a cold start.

Owns asking for such a process. Where the server's libraries have read another environment than the
process is to have, or nobody answers, it is started cold as ever.
"""

import asyncio
import json
import os
import socket
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgpack

from jupiterd.processes.import_threads import ONE_THREAD
from jupiterd.processes.interpreter import Process, start_module
from jupiterd.processes.warm_pool import LATE
from jupiterd.protocol.frames import LINK_FD_VARIABLE
from tests.support.fork_server import DATA, ENGINES, ENVIRONMENTS, FOLDER_VARIABLE

WITH_ENGINE = frozenset(
    {
        *("torch", "mlx"),  # nurseries of that kind
        *("train", "train_mlx", "evaluate", "generate", "train_proxy", "draw_weights"),
        *("check_sync", "prompt", "evaluate_held_out", "write_pairs", "grade_questions"),
    }
)
"""First words of the arguments of what imports an engine."""

WITH_TEXT = frozenset({"collect", "clean", "hold_out", "unite", "pack", "prepare"})
"""The same of what collects and packs text."""

SET_AFTER_FORK = LATE - ONE_THREAD.keys() | {LINK_FD_VARIABLE}
"""Variables that a fork reads itself; the warm process has its libraries' threads already."""

ANSWERS_WITHIN_S = 60.0
_MAX_MESSAGE_BYTES = 1 << 12


class Forked:
    """A process that was forked elsewhere."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection
        self._status: int | None = None
        self._ended = asyncio.get_running_loop().create_task(self._listen())

    @property
    def returncode(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        return self._status

    async def wait(self) -> int:
        """Return the exit status once it has ended."""
        return await asyncio.shield(self._ended)

    async def _listen(self) -> int:
        with self._connection:
            told = await received(self._connection)
        self._status = told["status"] if told else -9
        return self._status


async def start_warm(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    pass_fds: Sequence[int],
) -> Process:
    """Fork a module's process from a warm one, or else start it cold."""
    kind = kind_for(arguments[0], environment)
    order = {
        "module": module,
        "arguments": list(arguments),
        "environment": dict(environment),
        "numbers": list(pass_fds),
    }
    forked = await ask(kind, order, (output, *pass_fds)) if kind else None
    return forked or await start_module(module, arguments, environment, output, pass_fds)


def kind_for(task: str, environment: Mapping[str, str]) -> str | None:
    """Return which warm process has imported what a task needs and read the same environment."""
    kinds = ENGINES if task in WITH_ENGINE else (DATA,) if task in WITH_TEXT else ()
    # A nursery imports with one thread, as the warm process has, and its forks set their own.
    late = SET_AFTER_FORK | ONE_THREAD.keys() if task in ENGINES else SET_AFTER_FORK
    early = _without(late, environment)
    try:
        read = json.loads((_folder() / ENVIRONMENTS).read_text())
    except OSError:  # it is another user's
        return None
    return next((kind for kind in kinds if _without(late, read[kind]) == early), None)


def _without(names: AbstractSet[str], environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in names}


def _folder() -> Path:
    return Path(os.environ[FOLDER_VARIABLE])


async def ask(kind: str, order: Mapping[str, object], descriptors: Sequence[int]) -> Forked | None:
    """Have a process forked; None where that can't be."""
    loop = asyncio.get_running_loop()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    network, folder = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(".", os.O_RDONLY)
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            await loop.sock_connect(connection, str(_folder() / kind))
            socket.send_fds(connection, [msgpack.packb(order)], [network, folder, *descriptors])
            told = await received(connection)
    except OSError:  # also where it takes too long
        told = {}
    finally:
        os.close(network)
        os.close(folder)
    if told:
        return Forked(told["pid"], connection)
    connection.close()
    return None


async def received(connection: socket.socket) -> dict[str, int]:
    """Return the next message; nothing where there is none to come."""
    try:
        data = await asyncio.get_running_loop().sock_recv(connection, _MAX_MESSAGE_BYTES)
    except ConnectionError:
        data = b""
    return msgpack.unpackb(data) if data else {}
