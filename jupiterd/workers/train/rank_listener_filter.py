"""Who may connect to this rank: the members of its gang, and nobody else.

Owns closing what gloo, NCCL and MLX listen with, as soon as they do, and noticing who knocks.
Doesn't know how the ranks meet. The libraries open their sockets by themselves, so a thread looks
for them; a ring's port is held beforehand, since MLX lets no thread run meanwhile.

Where the system can't close a socket (macOS), a stranger that got in is hung up on.
"""

import os
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from jupiterd.errors import WorkFailedError
from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.source_filter.listeners import (
    close_to_others,
    dropped,
    hang_up_on_others,
    own_listeners,
)
from jupiterd.source_filter.ring_port import RingPort, hold_ring_port

FIRST_LOOKS_S: Final = 0.0005
"""Between looks for the first socket: that is how long a stranger has."""

LATER_LOOKS_S: Final = 0.02
"""Between looks for more, until the ranks have met; NCCL opens several."""

NEWS_S: Final = 2.0
"""Between looks for who knocked."""

MAX_HOSTS: Final = 16
"""Addresses that are told at once."""

Report = Callable[[ConnectionsRefused], None]


@contextmanager
def closed_to_strangers(members: Sequence[str], report: Report) -> Generator[Callable[[], None]]:
    """Around the life of a torch gang; yields what is to be called once the ranks have met.

    members: the addresses of all its machines; nothing is closed where there are none
    """
    if not members:
        yield lambda: None
        return
    doors, has_met, is_over = _Doors(members), threading.Event(), threading.Event()
    watch = threading.Thread(target=_watch, args=(doors, has_met, is_over, report), daemon=True)
    watch.start()
    try:
        yield has_met.set
    finally:
        has_met.set()
        is_over.set()


@contextmanager
def ring_closed_to_strangers(
    address: str, members: Sequence[str], report: Report
) -> Generator[int]:
    """Around the forming of an MLX ring, whose rank listens at that address (host:port).

    Yields how many sockets listen there before the ring's does.

    Raises:
        WorkFailedError: a stranger has got in where the system couldn't keep it out.
    """
    host, _, port = address.rpartition(":")
    held = hold_ring_port(host, int(port), members)
    yield 0 if held is None else 1
    if held is not None:
        threading.Thread(target=_report_later, args=(held, report), daemon=True).start()
    elif members and (strangers := hang_up_on_others([int(port)], members)):
        _report_strangers(strangers, report)
        raise WorkFailedError(f"{strangers[0]}, which is no member, took a neighbour's place")


class _Doors:
    """The listening sockets that have appeared in this process since this was made."""

    def __init__(self, members: Sequence[str]) -> None:
        self._members = members
        self._strangers: list[str] = []
        self._listeners: dict[int, socket.socket] = {}
        """By inode."""
        before = own_listeners()
        self._not_ours = {_inode(listener) for listener in before}
        for listener in before:
            listener.close()
        self._counted = 0

    @property
    def is_open(self) -> bool:
        """Say whether any has appeared."""
        return bool(self._listeners)

    def look(self) -> None:
        """Close what has appeared since the last look; hang up on strangers that were faster."""
        for listener in own_listeners():
            inode = _inode(listener)
            if inode in self._not_ours or inode in self._listeners:
                listener.close()
                continue
            self._listeners[inode] = listener
            close_to_others(listener, self._members)
        ports = [int(each.getsockname()[1]) for each in self._listeners.values()]
        self._strangers += hang_up_on_others(ports, self._members)

    def refused(self) -> ConnectionsRefused | None:
        """Return who knocked since the last call, None if nobody did."""
        drops = sum(dropped(listener) for listener in self._listeners.values())
        count = drops - self._counted + len(self._strangers)
        hosts, self._counted, self._strangers = self._strangers, drops, []
        return ConnectionsRefused(count, _named(hosts)) if count > 0 else None

    def close(self) -> None:
        """Let go of all of them; they stay closed to strangers."""
        for listener in self._listeners.values():
            listener.close()


def _watch(
    doors: _Doors, has_met: threading.Event, is_over: threading.Event, report: Report
) -> None:
    with suppress(OSError):  # no file is left to look with: the rank trains on
        while not has_met.wait(LATER_LOOKS_S if doors.is_open else FIRST_LOOKS_S):
            doors.look()
        while not is_over.wait(NEWS_S):
            doors.look()
            if (refused := doors.refused()) is not None:
                report(refused)
    doors.close()


def _report_strangers(strangers: Sequence[str], report: Report) -> None:
    if strangers:
        report(ConnectionsRefused(len(strangers), _named(strangers)))


def _named(hosts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(hosts))[:MAX_HOSTS]


def _report_later(held: RingPort, report: Report) -> None:
    never = threading.Event()
    while not never.wait(NEWS_S):
        _report_strangers(held.strangers(), report)


def _inode(listener: socket.socket) -> int:
    return os.fstat(listener.fileno()).st_ino
