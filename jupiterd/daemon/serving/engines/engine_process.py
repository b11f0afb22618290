"""One engine as a child process of the daemon: its start, its port, its output and its end.

Owns the process, its log and finding where it listens. Doesn't know requests, or which engine it
is. A keeper ends it when the daemon is gone (`processes.supervised_child`).

An engine takes any free port by itself. It is found among those on which the processes of this
engine listen, so that another program's is never taken for it.
"""

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import psutil

from jupiterd.cluster.serving.engine_command import EngineCommand
from jupiterd.formats import printable
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.log_file import LogFile
from jupiterd.processes.supervised_child import ChildProgram, SupervisedChild, start_supervised
from jupiterd.processes.uncancelled import finished

STOP_GRACE_S: Final = 1.0
"""Time between SIGTERM and SIGKILL, in s: an engine has nothing to save."""

_CHUNK_BYTES = 1 << 16
_LAST_WORDS_S = 2.0
"""For output that is still to be read; a process that has ended wrote all of it already."""
_MOST_CHARACTERS = 400
_LLAMA_REASON = re.compile(r"error loading model: (.+)")
_SIGNALLED = 128
"""A status beyond it is that of a signal."""


class EngineProcess:
    """A running engine; only `started_engine` creates it."""

    def __init__(self, child: SupervisedChild, log: LogFile) -> None:
        self._child, self._log = child, log
        self.end_words = ""
        """Why it is ended, where it is ended for a reason that people should know."""
        loop = asyncio.get_running_loop()
        self._printing = [loop.create_task(self._keep(reader)) for reader in child.outputs.values()]
        self.ended: asyncio.Task[str] = loop.create_task(self._end_reason())
        """Done when the process is gone; its result says how it ended."""

    @property
    def pid(self) -> int:
        """Return the process id of its keeper, which leads its group."""
        return self._child.pid

    @property
    def last_line(self) -> str:
        """Return the last line of its output."""
        return self._log.last_line

    async def ports(self) -> frozenset[int]:
        """Return the ports on which its processes listen."""
        return await asyncio.to_thread(_listening, self._child.pid)

    async def processor_s(self) -> float:
        """Return how much processor time its processes have taken, in s."""
        return await asyncio.to_thread(_processor_s, self._child.pid)

    def kill(self) -> None:
        """End it at once."""
        self._child.signal(signal.SIGKILL)

    async def stop(self) -> None:
        """End it and everything that it started; return when it is gone."""
        self._child.signal(signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=STOP_GRACE_S)
        self.kill()
        await asyncio.wait({self.ended})
        for task in self._printing:
            task.cancel()
        self._child.let_go()

    async def _end_reason(self) -> str:
        status = await self._child.wait()
        await asyncio.wait(self._printing, timeout=_LAST_WORDS_S)
        if self.end_words:
            return self.end_words
        words = f": {line}" if (line := _reason_in(self._log.last_text)) else ""
        if status - _SIGNALLED not in set(signal.Signals):
            return f"it ended with status {status}{words}"
        name = signal.Signals(status - _SIGNALLED).name
        return f"it was killed by {name}" + ("" if name == "SIGKILL" else words)

    async def _keep(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            with contextlib.suppress(OSError):  # disk full: read on, else it blocks
                await asyncio.to_thread(self._log.append, data)


@asynccontextmanager
async def started_engine(
    command: EngineCommand,
    environment: Mapping[str, str],
    log_path: Path,
    pass_fds: Sequence[int] = (),
) -> AsyncGenerator[EngineProcess]:
    """Start an engine; leaving the context ends it and everything that it started."""
    log = await asyncio.to_thread(LogFile, log_path)
    program = ChildProgram(
        argv=command.argv,
        environment={**environment, **command.environment},
        folder=str(log_path.parent),
        pass_fds=pass_fds,
    )
    process = EngineProcess(await start_supervised(program), log)
    try:
        yield process
    finally:
        await finished(process.stop())


def child_environment(engine: str, threads: int) -> dict[str, str]:
    """Return what a child has from this daemon: what workers have, and no key of anybody."""
    return worker_environment("serve", {"engine": engine, "threads": threads})


def _reason_in(text: str) -> str:
    """Return the line that says why an engine ended: llama.cpp's own, else the last one."""
    if said := _LLAMA_REASON.search(text):
        return printable(said[1].strip())[:_MOST_CHARACTERS]
    lines = [line.strip() for line in text.splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return printable(last)[:_MOST_CHARACTERS]


def _group(pid: int) -> list[psutil.Process]:
    try:
        keeper = psutil.Process(pid)
        return [keeper, *keeper.children(recursive=True)]
    except psutil.Error:
        return []


def _listening(pid: int) -> frozenset[int]:
    found: set[int] = set()
    for process in _group(pid):
        with contextlib.suppress(psutil.Error):
            found |= {
                connection.laddr.port
                for connection in process.net_connections(kind="tcp")
                if connection.status == psutil.CONN_LISTEN and connection.laddr
            }
    return frozenset(found)


def _processor_s(pid: int) -> float:
    total_s = 0.0
    for process in _group(pid):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total_s += times.user + times.system
    return total_s
