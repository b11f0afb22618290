"""The processes of one figure, and the wires between them.

Owns starting and ending stations, asking them, and shaping links. Doesn't know what is measured.
"""

import asyncio
import contextlib
import itertools
import json
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from tests.support.network.lab import Host, interface, lab_of, why_there_is_no_lab
from tests.support.network.links import THROTTLE

GBIT = 1_000_000_000
ANSWER_TIMEOUT_S = 120.0

Told = dict[str, Any]


class Remote:
    """One station, as the figures see it."""

    def __init__(self, folder: Path, host: str, prefix: Sequence[str] = ()) -> None:
        self.folder, self.host, self.prefix = folder, host, tuple(prefix)
        self.process: Process
        self.about: Told = {}
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Told]] = {}

    @property
    def node(self) -> str:
        return self.about["node"]

    async def start(self) -> None:
        """Start the process and wait until it serves."""
        self.process = await asyncio.create_subprocess_exec(
            *(*self.prefix, sys.executable, "-m", "tests.bench.artifacts.station"),
            *(str(self.folder), self.host),
            stdin=PIPE,
            stdout=PIPE,
            limit=1 << 20,
        )
        assert self.process.stdout is not None
        self.about = json.loads(await self.process.stdout.readline())
        self._reader = asyncio.ensure_future(self._read())

    async def ask(self, do: str, **more: Any) -> Told:
        """Let it do something; return what came of it."""
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"do": do, "number": number, **more}) + "\n"
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode())
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            told = await waiting
        assert "error" not in told, told["error"]
        return told

    async def kill(self) -> None:
        """End it as a power cut would end it for all that the process knows."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        self._reader.cancel()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            told = json.loads(line)
            waiting = self._waiting.pop(told["number"])
            if not waiting.done():
                waiting.set_result(told)


async def introduce(remotes: Sequence[Remote]) -> None:
    """Let everybody know how everybody else is reached."""
    about = [remote.about for remote in remotes]
    for remote in remotes:
        await remote.ask("know", peers=[each for each in about if each is not remote.about])


@contextlib.asynccontextmanager
async def on_loopback(count: int, folder: str) -> AsyncGenerator[list[Remote]]:
    """Yield stations that see each other over loopback."""
    with _scratch(folder) as scratch:
        remotes = [Remote(scratch / f"m{number}", "127.0.0.1") for number in range(count)]
        async with _started(remotes):
            yield remotes


@contextlib.asynccontextmanager
async def on_links(
    count: int, bits_per_s: int, folder: str
) -> AsyncGenerator[tuple[list[Remote], list[Host]]]:
    """Yield stations on machines of their own, whose links carry so much in each direction."""
    assert not why_there_is_no_lab((THROTTLE,)), why_there_is_no_lab((THROTTLE,))
    with _scratch(folder) as scratch, lab_of(count) as lab:
        for host in lab.hosts:
            shape(host, bits_per_s)
        remotes = [
            Remote(scratch / f"m{host.number}", host.address, host.inside.prefix)
            for host in lab.hosts
        ]
        async with _started(remotes):
            yield remotes, lab.hosts


@contextlib.asynccontextmanager
async def _started(remotes: Sequence[Remote]) -> AsyncGenerator[None]:
    try:
        for remote in remotes:
            await remote.start()
        await introduce(remotes)
        yield
    finally:
        for remote in remotes:
            if remote.about:
                await remote.kill()


@contextlib.contextmanager
def _scratch(folder: str) -> Any:
    made = Path(tempfile.mkdtemp(prefix="jupiter-bench-", dir=folder or None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def shape(host: Host, bits_per_s: int) -> None:
    """Let no more than that out of a machine, and no more into it."""
    rule = ("root", "tbf", "rate", f"{bits_per_s}bit", "burst", "256kb", "latency", "30ms")
    host.inside.run(THROTTLE, "qdisc", "add", "dev", interface(0), *rule)
    host.switches.run(THROTTLE, "qdisc", "add", "dev", host.port(0), *rule)
