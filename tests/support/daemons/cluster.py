"""Real daemons for a test: started, asked, waited for, killed, and ended for certain.

Owns their processes, folders and logs. Doesn't know what any test wants of them.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import psutil

from jupiterd.client.channel import ControlChannel
from jupiterd.client.watch import folded, watch
from jupiterd.cluster.ledger.ledger import Ledger, parse
from jupiterd.cluster.ledger.snapshot import parse_snapshot
from jupiterd.cluster.ledger.state import CycleState, State
from jupiterd.errors import JupiterError
from jupiterd.ids import ClusterId
from jupiterd.processes.orphans import reap
from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemons.surroundings import own_network
from tests.support.fork_server import forked_for, jupiterd_command
from tests.support.warm_program import JUPITERCTL, Program, Streams, run_program, start_program

BIN = Path(sys.executable).parent
NAMES = ("node-1", "node-2", "node-3")
MEET_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0
LOOK_S = 0.1
LOG_LINES = 25

CLOCK_STEP_NS = 100_000_000
"""Files that are written within less than this may be told to be of the same time."""

Written = Sequence[tuple[int, int]]

Document = Mapping[str, Any]


class Daemon:
    """One jupiterd of its own state folder; may be killed and started again."""

    threads = 1
    """Of each worker: the daemons share this machine's cores."""

    options: Sequence[str] = ("--local", "--port", "0")
    """What else the program is told: here, to be one of several on this machine."""

    def __init__(
        self,
        folder: Path,
        name: str,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        command: Sequence[str | Path] | None = None,
        log_folder: Path | None = None,
    ) -> None:
        self.name = name
        self.state_dir = folder / name
        self.log = (log_folder or folder) / f"{name}.log"
        self.prefix = prefix
        self.command = command or jupiterd_command()
        # Those of one cluster share this machine's disk; one that is alone reads what it is told.
        shared = {"JUPITER_READABLE_FOLDERS": str(folder)} if name in NAMES else {}
        self._environment = {**os.environ, **self._scope(), **shared, **(environment or {})}
        self.process: Program | None = None
        self._added_up: tuple[Written, State] | None = None

    def _scope(self) -> dict[str, str]:
        """Without a network of its own it meets none of the tests that run beside this one."""
        own = f"{crc32(bytes(self.log.parent)):08x}"
        return {} if self.prefix else {"JUPITER_SCOPE": own}

    def start(self) -> None:
        """Start the process; it answers some moments later."""
        named = ("--name", self.name, "--state-dir", self.state_dir)
        command = [*self.prefix, *self.command, *named, "--threads", str(self.threads)]
        with self.log.open("ab") as log:
            streams = Streams(subprocess.DEVNULL, log.fileno(), log.fileno())
            self.process = start_program(
                [*command, *self.options], self._environment, self.log.parent, streams
            )

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        assert self.process is not None
        return self.process.pid

    def workers(self) -> list[int]:
        """Return the pids of its worker processes that run; see `is_running`."""
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children(recursive=True)
            children += forked_for(self.pid)
            return [child.pid for child in children if is_running(child.pid)]
        return []

    def kill(self) -> None:
        """End the daemon as a power cut would; its workers are on their own."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s: float = END_TIMEOUT_S) -> None:
        """Ask the daemon to end, as a service does, and wait until it has."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(timeout_s)

    def end(self) -> None:
        """End the daemon in order, then for certain, and whatever it has left behind."""
        if self.process is None:
            return
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        reap(self.state_dir / "logs")

    async def ask(self, noun: str = "status") -> Document | None:
        """Return a document as the daemon has it now; None where it doesn't answer."""
        try:
            async with ControlChannel(self.state_dir) as channel:
                return await channel.status(noun)
        except JupiterError:
            return None

    def state(self) -> State:
        """Return what the ledger on this daemon's disk adds up to; it may be running.

        Tests look every few hundredths of a second, so nothing is added up twice.
        """
        written = self._written()
        if self._added_up is None or self._added_up[0] != written:
            state = self._add_up()
            is_settled = all(time.time_ns() - at_ns > CLOCK_STEP_NS for _, at_ns in written)
            self._added_up = (written if is_settled else (), state)
        return self._added_up[1]

    def _written(self) -> Written:
        """Return the sizes of the ledger's files, and when they were written last."""
        found: list[tuple[int, int]] = []
        for name in ("ledger.db", "ledger.db-wal"):
            with contextlib.suppress(FileNotFoundError):
                stat = (self.state_dir / name).stat()
                found.append((stat.st_size, stat.st_mtime_ns))
        return found

    def _add_up(self) -> State:
        file = LedgerFile(self.state_dir / "ledger.db")
        try:
            ledger = Ledger(ClusterId(file.get("cluster") or ""))
            if (snapshot := file.load_snapshot()) is not None:
                ledger.adopt(parse_snapshot(snapshot))
            for raw in file.load():
                ledger.add(parse(raw))
        finally:
            file.close()
        return ledger.state

    def holds(self, artifact: str) -> bool:
        """Say whether a complete copy of an artifact lies in its store."""
        return (self.state_dir / "store" / artifact[:2] / artifact / "manifest").is_file()

    def last_words(self) -> str:
        """Return the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join([f"--- {self.name}", *lines])


class Cluster:
    """The daemons of one test."""

    def __init__(self, daemons: Sequence[Daemon]) -> None:
        self.daemons = daemons

    def __getitem__(self, number: int) -> Daemon:
        return self.daemons[number]

    def by_id(self, node: str, view: Document) -> Daemon:
        """Return the daemon of a node id, by its name in somebody's status."""
        name = next(seen["name"] for seen in view["nodes"] if seen["id"] == node)
        return next(daemon for daemon in self.daemons if daemon.name == name)

    async def meet(self, among: Sequence[Daemon] = ()) -> list[Document]:
        """Wait until these daemons (or all) agree on a cluster, a leader and the roles."""
        chosen = among or self.daemons
        deadline_s = time.monotonic() + MEET_TIMEOUT_S
        while True:
            views = [await daemon.ask() for daemon in chosen]
            known = [view for view in views if view is not None]
            if len(known) == len(chosen) and _agree(known, len(chosen)):
                return known
            if time.monotonic() > deadline_s:
                raise AssertionError(self.failure_text(f"they didn't become one cluster: {known}"))
            await asyncio.sleep(LOOK_S)

    async def say_yes(self, among: Sequence[Daemon] = ()) -> None:
        """Say yes, on the daemon that founded the cluster, to those that walked in; wait for it."""
        chosen = among or self.daemons
        view = (await self.meet(chosen))[0]
        founder = next(row["id"] for row in view["nodes"] if row["trusted"])
        for row in view["nodes"]:
            if not row["trusted"]:
                asked = ("node", "trust", row["name"], "--yes")
                done = await asyncio.to_thread(self.ctl, *asked, daemon=self.by_id(founder, view))
                assert done.returncode == 0, self.failure_text(done.stderr)
        async with asyncio.timeout(MEET_TIMEOUT_S):
            while not all(  # noqa: ASYNC110 - daemons are asked
                row["trusted"] for seen in await self.meet(chosen) for row in seen["nodes"]
            ):
                await asyncio.sleep(LOOK_S)

    async def until(
        self,
        is_so: Callable[[Document], bool],
        what: str,
        timeout_s: float,
        daemon: Daemon | None = None,
        noun: str = "cycle",
    ) -> Document:
        """Follow a daemon's cycle until `is_so` holds of its document; return that.

        noun: `train` follows a run without the cycle
        """
        document: Document = {}
        try:
            async with (
                asyncio.timeout(timeout_s),
                ControlChannel((daemon or self[0]).state_dir) as channel,
                contextlib.aclosing(watch(channel, noun)) as messages,
            ):
                async for message in messages:
                    document = folded(document, message)
                    cycle = document.get(noun)
                    if cycle is not None and is_so(cycle):
                        return cycle
        except TimeoutError:
            pass
        raise AssertionError(self.failure_text(f"{what}: not within {timeout_s:g} s; {document}"))

    async def recorded(
        self,
        is_so: Callable[[CycleState], bool],
        what: str,
        timeout_s: float,
        daemon: Daemon | None = None,
    ) -> CycleState:
        """Look at a daemon's ledger until `is_so` holds of its only cycle; return that."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            cycles = (daemon or self[0]).state().cycles
            if len(cycles) == 1 and is_so(cycle := next(iter(cycles.values()))):
                return cycle
            if time.monotonic() > deadline_s:
                raise AssertionError(
                    self.failure_text(f"{what}: not recorded within {timeout_s:g} s")
                )
            await asyncio.sleep(LOOK_S)

    def ctl(
        self, *arguments: str, daemon: Daemon | None = None, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run jupiterctl against one of the daemons, as a user would."""
        state_dir = (daemon or self[0]).state_dir
        return run_program([JUPITERCTL, "--state-dir", state_dir, *arguments], timeout_s)

    def failure_text(self, what: str) -> str:
        """Return a failure's text with the end of every log."""
        return "\n".join([what, *(daemon.last_words() for daemon in self.daemons)])


def wrong(view: Document) -> list[str]:
    """Return what health finds wrong; that somebody may say yes to who walked in isn't."""
    return [line["title"] for line in view["health"] if line["code"] != "node-walked-in"]


@contextlib.asynccontextmanager
async def running(daemons: Sequence[Daemon]) -> AsyncGenerator[Cluster]:
    """Start daemons, and end them whatever happens."""
    try:
        for daemon in daemons:
            daemon.start()
        yield Cluster(daemons)
    finally:
        await asyncio.gather(*(asyncio.to_thread(daemon.end) for daemon in daemons))


@contextlib.asynccontextmanager
async def three_daemons(folder: Path, log_folder: Path | None = None) -> AsyncGenerator[Cluster]:
    """Run three daemons that nobody but themselves can meet."""
    with own_network() as prefix:
        daemons = [Daemon(folder, name, prefix, log_folder=log_folder) for name in NAMES]
        async with running(daemons) as cluster:
            yield cluster


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that waits to be collected doesn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def all_gone(pids: Sequence[int], timeout_s: float) -> bool:
    """Wait for processes to end; say whether all did."""
    deadline_s = time.monotonic() + timeout_s
    while any(map(is_running, pids)):
        if time.monotonic() > deadline_s:
            return False
        await asyncio.sleep(LOOK_S)
    return True


def _agree(views: Sequence[Document], size: int) -> bool:
    """Say whether everybody sees the same, everybody alive, and nothing left to be settled."""
    clusters = [view["cluster"] for view in views]
    return (
        len({(c["id"], c["leader"], c["term"], c["head"]) for c in clusters}) == 1
        and clusters[0]["leader"] in {view["node"]["id"] for view in views}
        and all(c["nodes_alive"] == size for c in clusters)
        and all(
            node["role"] != "idle" or node["state"] != "alive"
            for view in views
            for node in view["nodes"]
        )
    )
