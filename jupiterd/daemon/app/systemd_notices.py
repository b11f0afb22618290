"""Notices to systemd about this daemon: ready, alive, what it does, and that it stops.

Owns when each is sent, and their form: datagrams of sd_notify(3). Doesn't know how anything is
done. The signs of life come from the daemon's own loop: where that is stuck they end, and systemd
starts the daemon again.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from jupiterd.client.channel import ControlChannel
from jupiterd.daemon.app.shutdown import Shutdown
from jupiterd.daemon.observability.sinks import run_forever
from jupiterd.daemon.runtime.settings import environment
from jupiterd.errors import JupiterError

log = logging.getLogger(__name__)

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHED_VARIABLE = "WATCHDOG_PID"

SIGNS: Final = 3
"""Signs of life within the time in which one is wanted: one or two may come late."""

STATUS_S: Final = 2.0

EXTENSION_S: Final = 20.0
"""How much longer than now stopping may take, said again and again while it does."""

EXTEND_S: Final = 5.0

AGAIN_S: Final = 0.2


class NotifySocket:
    """The socket of the service manager that started this process; see sd_notify(3)."""

    def __init__(self, address: str) -> None:
        """Take a path, or an abstract address that begins with @."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def found_in(cls, environment: Mapping[str, str]) -> Self | None:
        """Return the one that the environment names; None where there is none of a kind we know."""
        address = environment.get(SOCKET_VARIABLE, "")
        return cls(address) if address[:1] in ("/", "@") else None

    def send(self, **assignments: str | int) -> None:
        """Send assignments such as READY=1; without a listener this neither waits nor fails."""
        lines = "\n".join(f"{name}={_one_line(value)}" for name, value in assignments.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.settimeout(0)
            datagrams.sendto(lines.encode(), self._address)


def watchdog_s(environment: Mapping[str, str]) -> float | None:
    """Return the watchdog's interval, see sd_watchdog_enabled(3); None: there is none."""
    interval, pid = environment.get(WATCHDOG_VARIABLE, ""), environment.get(WATCHED_VARIABLE, "")
    is_other = pid not in ("", str(os.getpid()))
    return int(interval) / 1e6 if interval.isdecimal() and int(interval) and not is_other else None


def _one_line(value: str | int) -> str:
    return " ".join(str(value).split())


@dataclass(frozen=True)
class Watched:
    """What notices report: one daemon's run."""

    state_dir: Path
    ready: asyncio.Event
    shutdown: Shutdown
    status: Callable[[], dict[str, Any]]
    """Returns the status document."""


def notify_service_manager(watched: Watched, group: asyncio.TaskGroup) -> None:
    """Start the notices, where systemd has started this process and listens."""
    notify_socket = NotifySocket.found_in(environment())
    if notify_socket is None:
        return
    notices = Notices(watched, notify_socket)
    group.create_task(notices.ready(), name="notify: ready")
    group.create_task(notices.stopping(), name="notify: stopping")
    group.create_task(run_forever("notify", notices.status), name="notify: status")
    interval_s = watchdog_s(environment())
    if interval_s is not None:
        group.create_task(notices.alive(interval_s / SIGNS), name="notify: alive")


class Notices:
    """All notices of one daemon."""

    def __init__(self, watched: Watched, socket_: NotifySocket) -> None:
        self._watched = watched
        self._socket = socket_

    async def ready(self) -> None:
        """Send READY once jupiterctl would be answered: this asks through the same socket."""
        await self._watched.ready.wait()
        while not await self._is_answered():  # noqa: ASYNC110 - the socket is outside of us
            await asyncio.sleep(AGAIN_S)
        self._socket.send(READY=1, STATUS=status_line(self._watched.status()))

    async def _is_answered(self) -> bool:
        try:
            async with ControlChannel(self._watched.state_dir) as channel:
                await channel.status("status")
        except JupiterError as error:
            log.warning("not_answered", extra={"reason": error.message})
            return False
        return True

    async def alive(self, interval_s: float) -> None:
        """Send a sign of life again and again."""
        while True:
            self._socket.send(WATCHDOG=1)
            await asyncio.sleep(interval_s)

    async def status(self) -> None:
        """Send what it does whenever that changes, seldom enough to be read."""
        await self._watched.ready.wait()
        last = ""
        while not self._watched.shutdown.is_requested:
            line = status_line(self._watched.status())
            if line != last:
                self._socket.send(STATUS=line)
            last = line
            await asyncio.sleep(STATUS_S)
        await asyncio.Event().wait()

    async def stopping(self) -> None:
        """Send that it stops, and while the loop gets on with it that it takes longer."""
        await self._watched.shutdown.wait()
        self._socket.send(STOPPING=1, STATUS="stopping: hands over and saves")
        while True:
            self._socket.send(EXTEND_TIMEOUT_USEC=int(EXTENSION_S * 1e6))
            await asyncio.sleep(EXTEND_S)


def status_line(status: dict[str, Any]) -> str:
    """Return the cluster, this node's part in it, and what is worked on, in one line."""
    cluster, own = status["cluster"], status["node"]["id"]
    row = next((each for each in status["nodes"] if each["id"] == own), None)
    leader = {own: "leads", None: "election"}.get(cluster["leader"], "follows")
    counted = f"{cluster['nodes_alive']} of {cluster['nodes_total']} nodes"
    parts = [cluster["name"] or "no cluster yet", counted, leader, row["role"] if row else ""]
    return ", ".join([part for part in parts if part] + [*map(_work, _running(status))])


def _running(status: dict[str, Any]) -> list[dict[str, Any]]:
    found = (status.get("cycle"), status.get("train"))
    return [work for work in found if work is not None and work["state"] in ("running", "waiting")]


def _work(work: dict[str, Any]) -> str:
    place = f" round {work['round']}" if work.get("round") else ""
    return f"{work.get('domain') or 'training'}:{place} {work.get('phase') or ''}".rstrip()
