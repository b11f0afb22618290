"""The processes of a user's script on this machine: starts them, reads their output, ends them.

Owns the processes, their groups, the store where the ranks meet, and the files that MLX reads.
Doesn't know the ranks of other machines, or who reads the output. A script has no link to Jupiter:
only its output and its exit statuses are known.
"""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from jupiterd.errors import BadRouteError, NotFoundError, PortInUseError
from jupiterd.processes.device_locks import gpus_locked
from jupiterd.processes.script_plan import RankOrder, ScriptOrder, own_address
from jupiterd.processes.scripts.events import STORE_RANK, Ended, Notice, Printed, ScriptEvent
from jupiterd.processes.scripts.listener_filter import closed_to_strangers
from jupiterd.processes.supervised_child import ChildProgram, SupervisedChild, start_supervised
from jupiterd.source_filter.listeners import close_to_others
from jupiterd.source_filter.ring_port import RingPort, hold_ring_port

STOP_GRACE_S: Final = 5.0
"""Time between SIGTERM and SIGKILL, in s, in which a script may save its state."""

LAST_WORDS_S: Final = 0.5
"""How long to wait for more output of an ended rank, in s, while another process holds it open."""

QUEUED: Final = 64
CHUNK_BYTES: Final = 1 << 16
BACKLOG: Final = 1024

_PACKAGE = Path(__file__).resolve().parent.parent
STORE: Final = _PACKAGE / "workers" / "standalone" / "script_store.py"


class ScriptGroup:
    """The running processes of one order; only `start_script` creates it."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[ScriptEvent] = asyncio.Queue(QUEUED)
        self._running: dict[int, SupervisedChild] = {}
        self._watches: dict[int, asyncio.Task[None]] = {}
        self._notices = set[asyncio.Task[None]]()
        self._is_over = False
        self._loop = asyncio.get_running_loop()

    @property
    def pids(self) -> dict[int, int]:
        """Return the process id of each rank's keeper, which is also its group's."""
        return {rank: child.pid for rank, child in self._running.items()}

    async def events(self) -> AsyncGenerator[ScriptEvent]:
        """Yield the ranks' output and ends, until all ranks have ended."""
        left = {rank for rank in self._running if rank != STORE_RANK}
        while left:
            event = await self._events.get()
            if isinstance(event, Ended):
                left.discard(event.rank)
            yield event

    def signal(self, number: int) -> None:
        """Signal every running rank and what it started; only SIGKILL goes to the store as well."""
        for rank, child in self._running.items():
            if rank != STORE_RANK or number == signal.SIGKILL:  # the ranks may need the store
                child.signal(number)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the ranks' terminals, if they have any."""
        for child in self._running.values():
            child.resize(rows, columns)

    def hear(self, event: ScriptEvent) -> None:
        """Take an event from another thread."""
        with contextlib.suppress(RuntimeError):  # the loop is over
            self._loop.call_soon_threadsafe(self._pass_on, event)

    async def start(self, rank: int, program: ChildProgram) -> None:
        """Start one process with a keeper of its own."""
        child = self._running[rank] = await start_supervised(program)
        self._watches[rank] = asyncio.get_running_loop().create_task(self._watch(rank, child))

    async def end(self) -> None:
        """End all processes, the store too, and drop all further events; idempotent."""
        self._is_over = True
        draining = asyncio.get_running_loop().create_task(self._drain())
        try:
            await self.end_ranks()
        finally:
            self.signal(signal.SIGKILL)
            await asyncio.gather(*self._watches.values())
            draining.cancel()
            for notice in self._notices:
                notice.cancel()

    async def end_ranks(self) -> None:
        """End all ranks: SIGTERM, `STOP_GRACE_S`, SIGKILL; `events` still yields their output."""
        ranks = [watch for rank, watch in self._watches.items() if rank != STORE_RANK]
        self.signal(signal.SIGTERM)
        if ranks:
            await asyncio.wait(ranks, timeout=STOP_GRACE_S)
        self.signal(signal.SIGKILL)

    async def _drain(self) -> None:
        """Drop events that nobody reads any more, so that tasks which wait to put one can go on."""
        while True:
            await self._events.get()

    async def _watch(self, rank: int, child: SupervisedChild) -> None:
        """Put the output of one process, then its end; its whole group has been killed by then."""
        loop = asyncio.get_running_loop()
        reading = [
            loop.create_task(self._read(rank, stream, is_error=is_error))
            for is_error, stream in child.outputs.items()
        ]
        try:
            status = await child.wait()
            await self._heard(reading)
        finally:
            for task in reading:
                task.cancel()
            child.let_go()
        await self._put_event(Ended(rank, status))

    async def _heard(self, reading: Iterable[asyncio.Task[None]]) -> None:
        """Wait for the end of the output, unless a process outside the group holds it open."""
        left = set(reading)
        while left:
            _, left = await asyncio.wait(left, timeout=LAST_WORDS_S)
            if not self._events.full():
                return

    async def _read(self, rank: int, stream: asyncio.StreamReader, *, is_error: bool) -> None:
        with contextlib.suppress(OSError):  # a terminal's end raises an error
            while data := await stream.read(CHUNK_BYTES):
                await self._put_event(Printed(rank, is_error, data))

    def _pass_on(self, event: ScriptEvent) -> None:
        """Put an event, or drop it if the queue is full: the ranks must not wait for it.

        A notice isn't dropped but put later, since it is sent only once.
        """
        if isinstance(event, Notice):
            notice = self._loop.create_task(self._put_event(event))
            self._notices.add(notice)
            notice.add_done_callback(self._notices.discard)
        elif not (self._is_over or self._events.full()):
            self._events.put_nowait(event)

    async def _put_event(self, event: ScriptEvent) -> None:
        if not self._is_over:
            await self._events.put(event)


@asynccontextmanager
async def start_script(
    order: ScriptOrder, environment: Mapping[str, str]
) -> AsyncGenerator[ScriptGroup]:
    """Start the store, if this machine has it, and the ranks; leaving the context ends them all.

    The last rank of a ring connects first, so it starts last.

    Raises:
        NotFoundError: the program or its folder doesn't exist.
        PortInUseError: another program uses the port where the ranks should meet.
        DeviceBusyError: a gang trains on one of its GPUs.
    """
    _check(order, environment)
    group = ScriptGroup()
    async with gpus_locked(order.gpus, order.id) as locks:
        with (
            tempfile.TemporaryDirectory(prefix="jupiter-launch-") as scratch,
            ring_ports_guarded(order) as rings,
            closed_to_strangers(order.member_hosts, order.open_ports, rings, group.hear),
        ):
            try:
                if order.store_port:
                    await _start_store(group, order, environment)
                for rank in order.ranks:
                    its_own = rank_environment(rank, environment, Path(scratch))
                    program = ChildProgram(order.argv, its_own, order.folder, locks, order.window)
                    await group.start(rank.rank, program)
                yield group
            finally:
                await group.end()


def rank_environment(
    order: RankOrder, environment: Mapping[str, str], scratch: Path
) -> dict[str, str]:
    """Return all environment variables of one rank; write the file that MLX reads, if needed."""
    found = {**order.defaults, **environment, **order.variables}
    if order.hostfile:
        path = scratch / f"ring-{order.rank}.json"
        path.write_text(order.hostfile, encoding="utf-8")  # in a private folder
        found["MLX_HOSTFILE"] = str(path)
    return found


def script_python(argv: Sequence[str]) -> str:
    """Return the Python that runs the script (it has the script's torch), else this one."""
    return argv[0] if Path(argv[0]).name.startswith("python") else sys.executable


def program(argv: Sequence[str], folder: str, path: str | None) -> str | None:
    """Return the path of the program that would run; None if there is none."""
    import shutil

    if "/" in argv[0]:
        return shutil.which(str(Path(folder) / argv[0]))
    return shutil.which(argv[0], path=path)


def _check(order: ScriptOrder, environment: Mapping[str, str]) -> None:
    if not Path(order.folder).is_dir():
        raise NotFoundError(f"the folder {order.folder} isn't there")
    if program(order.argv, order.folder, environment.get("PATH")) is None:
        raise NotFoundError(f"there is no program {order.argv[0]}", "give its path")


async def _start_store(
    group: ScriptGroup, order: ScriptOrder, environment: Mapping[str, str]
) -> None:
    """Start the store on a socket that already listens: early ranks wait in its queue."""
    with bind_meeting(order.store_host, order.store_port, order.member_hosts) as listener:
        argv = (script_python(order.argv), str(STORE), str(listener.fileno()))
        alone = {**environment, "OMP_NUM_THREADS": "1"}
        program = ChildProgram(argv, alone, order.folder, (listener.fileno(),))
        await group.start(STORE_RANK, program)


@contextlib.contextmanager
def ring_ports_guarded(order: ScriptOrder) -> Generator[list[RingPort]]:
    """Keep strangers from the ports at which the ranks of an MLX ring will listen."""
    rings: list[RingPort] = []
    with contextlib.ExitStack() as stack:
        for rank in order.ranks:
            if (place := own_address(rank.hostfile, rank.rank)) is not None:
                held = hold_ring_port(*place, order.member_hosts)
                if held is not None:
                    stack.callback(held.close)
                    rings.append(held)
        yield rings


def bind_meeting(host: str, port: int, members: Sequence[str] = ()) -> socket.socket:
    """Return a listening socket.

    Args:
        host: an IP address of this machine.
        port: 0 lets the system choose.
        members: the only addresses that may connect, if the system can filter; empty: any.

    Raises:
        PortInUseError: the port is taken.
        BadRouteError: this machine doesn't have the address, or `host` is a name, which would
            need a slow look-up.
    """
    import errno

    _check_address(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        close_to_others(listener, members)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(
                f"port {port} on {host} is taken by another program",
                "choose another one with --master-port, or leave it to the system",
            ) from error
        raise BadRouteError(f"can't listen on {host}:{port}: {error.strerror}") from error
    return listener


def _check_address(host: str) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        raise BadRouteError(f"{host!r} isn't an IP address", "give the address itself") from error


def free_ports(host: str, count: int) -> tuple[int, ...]:
    """Return `count` different ports of `host` that are free now.

    Raises:
        BadRouteError: this machine doesn't have the address.
    """
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(bind_meeting(host, 0)) for _ in range(count)]
        return tuple(int(listener.getsockname()[1]) for listener in held)
