"""The daemon's side of a nursery: a process with loaded libraries that forks workers quickly.

Owns the process, its link, and the exit statuses of the workers that it forked. Doesn't know what
they do, or when a nursery is needed (`warm_pool`). The daemon ends a forked worker like any other;
if the nursery dies, its workers die too.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgpack

from jupiterd.errors import WorkFailedError
from jupiterd.processes import interpreter, orphans
from jupiterd.processes.import_threads import ONE_THREAD
from jupiterd.processes.suspended_workers import until_stopped
from jupiterd.processes.uncancelled import finished
from jupiterd.protocol.frames import LINK_FD_VARIABLE

log = logging.getLogger(__name__)

MODULE = "jupiterd.workers.forkserver"
CAN_FORK = sys.platform == "linux"
"""Linux only: Metal doesn't survive a fork, and macOS has no parent-death signal."""

_MESSAGE_BYTES = 1 << 12


class Born:
    """A worker process that a nursery forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def returncode(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Wait for its end and return the exit status."""
        return await asyncio.shield(self._ended)

    def end(self, status: int) -> None:
        """Record the exit status of the ended worker."""
        if not self._ended.done():
            self._ended.set_result(status)


class Forkserver:
    """One running nursery; only `open_nursery` creates it."""

    def __init__(self, pid: int, link: socket.socket, environment: Mapping[str, str]) -> None:
        self.environment = environment
        """The environment with which it loaded its libraries."""
        self.is_alive = True
        self.is_ready = False
        """Whether it has loaded its libraries."""
        self._pid = pid
        self._link = link
        self._gone = asyncio.Event()
        self._expected: deque[asyncio.Future[Born]] = deque()
        self._born: dict[int, Born] = {}
        asyncio.get_running_loop().add_reader(link.fileno(), self._receive)

    async def bear(
        self, environment: Mapping[str, str], link: int, output: int, pass_fds: Sequence[int]
    ) -> Born:
        """Fork a worker that inherits these descriptors, `pass_fds` under the same numbers.

        Raises:
            WorkFailedError: the nursery is gone, or can't fork.
        """
        order = msgpack.packb({"environment": dict(environment), "numbers": list(pass_fds)})
        born: asyncio.Future[Born] = asyncio.get_running_loop().create_future()
        try:
            socket.send_fds(self._link, [cast("bytes", order)], [link, output, *pass_fds])
        except OSError as error:
            raise WorkFailedError("the nursery has gone") from error
        self._expected.append(born)
        return await born

    @property
    def has_children(self) -> bool:
        """Return whether it has running workers or orders to fork one."""
        return bool(self._born or self._expected)

    def kill(self) -> None:
        """Kill the process; the closed link makes `_receive` do the rest."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)

    async def kill_when_stopped(self) -> None:
        """Kill it once it is stopped (SIGSTOP): it couldn't report how its children end."""
        await until_stopped(self._pid)
        log.warning("nursery_stopped", extra={"pid": self._pid})
        self.kill()

    async def gone(self) -> None:
        """Wait until the process is gone."""
        await self._gone.wait()

    def close(self) -> None:
        """Record that the process is gone, and kill the workers that it forked."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._gone.set()
        asyncio.get_running_loop().remove_reader(self._link.fileno())
        self._link.close()
        for expected in self._expected:
            if not expected.done():
                expected.set_exception(WorkFailedError("the nursery has gone"))
        for born in self._born.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(born.pid, signal.SIGKILL)
            born.end(-signal.SIGKILL)

    def _receive(self) -> None:
        try:
            data = self._link.recv(_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self._hear(cast("dict[str, Any]", msgpack.unpackb(data)))

    def _hear(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"pid": pid, "status": status}:
                if (born := self._born.pop(pid, None)) is not None:
                    born.end(status)
            case {"pid": pid}:
                born = self._born[pid] = Born(pid)
                self._answer(born)
            case {"refused": why}:
                log.warning("nursery_refused", extra={"reason": why})
                self._answer(WorkFailedError(f"the nursery can't fork: {why}"))
            case _:
                self.is_ready = True
                log.info("nursery_ready")

    def _answer(self, answer: Born | WorkFailedError) -> None:
        expected = self._expected.popleft()
        if expected.cancelled():
            if isinstance(answer, Born):  # the caller was cancelled
                with contextlib.suppress(ProcessLookupError):
                    os.kill(answer.pid, signal.SIGKILL)
        elif isinstance(answer, Born):
            expected.set_result(answer)
        else:
            expected.set_exception(answer)


@asynccontextmanager
async def open_nursery(
    kind: str, environment: Mapping[str, str], log_path: Path
) -> AsyncGenerator[Forkserver]:
    """Start a nursery; leaving the context ends it and every worker that it forked.

    While it imports, libraries are kept to one thread, whatever `environment` says of that.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)  # noqa: FBT003 - the socket API
    try:
        with log_path.open("ab") as output:
            with_link = {**environment, **ONE_THREAD, LINK_FD_VARIABLE: str(theirs.fileno())}
            process = await interpreter.start_module(
                MODULE, (kind,), with_link, output.fileno(), (theirs.fileno(),)
            )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    nursery = Forkserver(process.pid, ours, environment)
    watching = asyncio.get_running_loop().create_task(nursery.kill_when_stopped())
    remembered = log_path.with_suffix(orphans.SUFFIX)
    try:
        await asyncio.to_thread(orphans.remember, remembered, process.pid)
        yield nursery
    finally:
        watching.cancel()
        nursery.close()
        nursery.kill()
        await finished(_forgotten(process, remembered))


async def _forgotten(killed: interpreter.Process, remembered: Path) -> None:
    await killed.wait()
    await asyncio.to_thread(orphans.forget, remembered)
