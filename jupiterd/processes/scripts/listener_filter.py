"""Closes a script's listening sockets to strangers as soon as they appear.

Owns a thread that looks for such sockets among the processes below this one, and counts refused
connections. The script opens its sockets itself: gloo and NCCL do, so do programs that torchrun
starts, and servers of its own. Sockets on loopback stay as they are, and so do ports that the user
opened for the launch. Doesn't know how to fetch another process's socket, or who reads the report.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from jupiterd.processes.script_plan import PortRange
from jupiterd.processes.scripts.events import Notice
from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.source_filter.listeners import close_to_others, is_closed
from jupiterd.source_filter.other_processes import fetched
from jupiterd.source_filter.program import plain_address, program_for
from jupiterd.source_filter.ring_port import RingPort
from jupiterd.source_filter.socket_table import SocketRow, SocketTable

FIRST_LOOKS_S: Final = 0.01
"""Time between looks, in s, after a start or a new socket: others usually follow soon."""

SLOWER_BY: Final = 0.005
"""The time between looks grows to this share of the time without a new socket."""

BEGINNING_S: Final = 10.0
"""How long looks may exceed their budget, in s, after the last new socket."""

BUDGET: Final = 0.0005
"""Share of one processor's time that looks may take; waking up costs as much again."""

LONGEST_LOOK_S: Final = 1.0
NEWS_S: Final = 2.0
"""Time between reports of refused connections, in s."""

FASTER_S: Final = 1.0
"""For this long after a socket was closed, in s, earlier connections of strangers are ended."""

TRIES: Final = 3
"""After this many looks that find no process below with it, a socket belongs to another program."""

FAILURES: Final = 3
"""After this many failed looks in a row the thread gives up and tells the user."""

RETRY_S: Final = 0.25

MAX_HOSTS: Final = 16
MAX_NOTICES: Final = 8

LOOPBACK: Final = ("127.0.0.1", "::1")

_CHOSEN_BY_KERNEL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")

Report = Callable[[Notice | ConnectionsRefused], None]


@contextmanager
def closed_to_strangers(
    members: Sequence[str],
    open_ports: Sequence[PortRange],
    rings: Sequence[RingPort],
    report: Report,
) -> Generator[None]:
    """Close the listening sockets of processes below this one to strangers within the context.

    Args:
        members: the addresses of all machines of the launch; empty: nothing is closed.
        open_ports: ports to leave open.
        rings: MLX ring ports whose refused connections are reported too.
        report: called in a thread.
    """
    if sys.platform != "linux" or not members:
        yield
        return
    is_over = threading.Event()
    doors = ScriptListeners((*LOOPBACK, *members), open_ports, report)
    watch = threading.Thread(target=_watch, args=(doors, rings, is_over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join()


class ScriptListeners:
    """The listening sockets of the processes below this one."""

    def __init__(
        self, members: Sequence[str], open_ports: Sequence[PortRange], report: Report
    ) -> None:
        self.members = members
        self._known_hosts = {plain_address(member) for member in members}
        self._open_ports = open_ports
        self._report = report
        self._user = os.geteuid()
        self._looked_at: dict[int, int] = {}
        """Inode of a socket that may not be the script's -> looks that found no process below with
        it."""
        self._closed: dict[int, SocketRow] = {}
        """Inode of a closed socket -> its row when it was last counted."""
        self._tries = 0
        self._strangers: list[str] = []
        self._named: set[int] = set()
        self._appeared_s = time.monotonic()
        self.failures = 0
        """Failed looks in a row."""

    @property
    def quiet_s(self) -> float:
        """Return the time since the last new socket, in s."""
        return time.monotonic() - self._appeared_s

    def look(self, table: SocketTable) -> None:
        """Close new sockets; raises OSError if the system doesn't allow it."""
        rows = {row.inode: row for row in table.listening() if row.owner == self._user}
        self._count(rows)
        new = {inode for inode in rows if self._may_be_ours(rows[inode])}
        if new:
            self._close(new, rows)
        if self._closed and self.quiet_s < FASTER_S:
            self._hang_up(table)
        self.failures = 0

    def hear(self, rings: Iterable[RingPort]) -> None:
        """Report the connections that were refused since the last call."""
        for ring in rings:
            self._note_strangers(ring.strangers())
        tries, hosts = self._tries, list(dict.fromkeys(self._strangers))[:MAX_HOSTS]
        self._tries, self._strangers = 0, []
        if tries:
            self._report(ConnectionsRefused(tries, hosts))

    def say(self, words: str) -> None:
        """Report a message for the user."""
        self._report(Notice(words))

    def _count(self, rows: dict[int, SocketRow]) -> None:
        """Count refused connections; forget closed inodes, as the kernel reuses their numbers."""
        for inode, before in list(self._closed.items()):
            if (row := rows.get(inode)) is None:
                del self._closed[inode]
                continue
            self._tries += max(0, row.drops - before.drops)
            self._closed[inode] = row
        for inode in self._looked_at.keys() - rows.keys():
            del self._looked_at[inode]

    def _may_be_ours(self, row: SocketRow) -> bool:
        if row.inode in self._closed or self._looked_at.get(row.inode, 0) >= TRIES:
            return False
        return not (row.host.is_loopback or any(row.port in ports for ports in self._open_ports))

    def _close(self, new: Collection[int], rows: dict[int, SocketRow]) -> None:
        for inode, listener in fetched(new):
            is_new = close_to_others(listener, self.members)
            if not is_new and not is_closed(listener):
                raise OSError("the kernel takes no filter for a socket")
            self._closed[inode] = rows[inode]
            self._looked_at.pop(inode, None)
            self._appeared_s = time.monotonic()
            if is_new:
                self._name(rows[inode].port)
        for inode in new:
            if inode not in self._closed:
                self._looked_at[inode] = self._looked_at.get(inode, 0) + 1

    def _name(self, port: int) -> None:
        """Tell the user that a port chosen by the script is closed: others may need to reach it."""
        if port in self._named or len(self._named) >= MAX_NOTICES or port in kernels_ports():
            return
        self._named.add(port)
        self.say(
            f"only this launch's machines reach the script's port {port};"
            f" --open-port {port} leaves it open"
        )

    def _hang_up(self, table: SocketTable) -> None:
        """End the connections that strangers made before the filter was in place."""
        ports = {row.port for row in self._closed.values()}
        theirs = {
            row.inode: str(row.peer)
            for row in table.connected()
            if row.port in ports and row.inode and row.peer not in self._known_hosts
        }
        for inode, connection in fetched(theirs) if theirs else ():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            self._note_strangers([theirs[inode]])

    def _note_strangers(self, hosts: Sequence[str]) -> None:
        self._tries += len(hosts)
        self._strangers += hosts


def pause_s(quiet_s: float, cost_s: float) -> float:
    """Return how long to wait until the next look, in s.

    Args:
        quiet_s: time since the last new socket.
        cost_s: processor time of the last look.
    """
    wished_s = max(FIRST_LOOKS_S, SLOWER_BY * quiet_s)
    if quiet_s > BEGINNING_S:
        wished_s = max(wished_s, cost_s / BUDGET)
    return min(LONGEST_LOOK_S, wished_s)


def kernels_ports() -> PortRange:
    """Return the ports from which the kernel chooses if a program names none."""
    try:
        first, last = map(int, _CHOSEN_BY_KERNEL.read_text(encoding="ascii").split())
        return PortRange(first, last)
    except (OSError, ValueError):
        return PortRange(32768, 60999)


def _watch(doors: ScriptListeners, rings: Sequence[RingPort], is_over: threading.Event) -> None:
    why = ""
    while doors.failures < FAILURES:
        try:
            program_for(doors.members)
            with closing(SocketTable()) as table:
                _look_until(is_over, doors, rings, table)
        except Exception as error:  # noqa: BLE001 - psutil's and struct's too: the user is told
            doors.failures += 1
            why = str(error)
        if is_over.wait(RETRY_S):
            return
    doors.say(
        "what the script listens with can't be closed to strangers here:"
        f" {why}; use a network that you trust"
    )
    while not is_over.wait(NEWS_S):
        with suppress(OSError):
            doors.hear(rings)


def _look_until(
    is_over: threading.Event, doors: ScriptListeners, rings: Sequence[RingPort], table: SocketTable
) -> None:
    heard_s, cost_s = time.monotonic(), 0.0
    while not is_over.wait(pause_s(doors.quiet_s, cost_s)):
        began_s = time.thread_time()
        doors.look(table)
        cost_s = time.thread_time() - began_s
        if time.monotonic() - heard_s > NEWS_S:
            heard_s = time.monotonic()
            doors.hear(rings)
