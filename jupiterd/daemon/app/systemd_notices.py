"""What systemd is told of this daemon: ready, alive, what it does, and that it stops.

Owns when each is said. Doesn't know the socket's form, or how anything is done. The signs of life
come from the daemon's own loop: where that is stuck they end, and systemd starts it again.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.client.channel import ControlChannel
from jupiterd.daemon.app.shutdown import Shutdown
from jupiterd.daemon.observability.sinks import in_spite_of_all
from jupiterd.daemon.runtime.settings import environment
from jupiterd.errors import JupiterError
from jupiterd.service.notify_socket import NotifySocket, watchdog_s

log = logging.getLogger(__name__)

SIGNS: Final = 3
"""Signs of life within the time in which one is wanted: one or two may come late."""

STATUS_S: Final = 2.0

EXTENSION_S: Final = 20.0
"""How much longer than now stopping may take, said again and again while it does."""

EXTEND_S: Final = 5.0

AGAIN_S: Final = 0.2


@dataclass(frozen=True)
class Watched:
    """What is told of: one daemon's run."""

    state_dir: Path
    ready: asyncio.Event
    shutdown: Shutdown
    status: Callable[[], dict[str, Any]]
    """Returns the status document."""


def tell_service_manager(watched: Watched, group: asyncio.TaskGroup) -> None:
    """Start telling systemd, where it has started this process and wants to know."""
    place = NotifySocket.found_in(environment())
    if place is None:
        return
    notices = Notices(watched, place)
    group.create_task(notices.ready(), name="notify: ready")
    group.create_task(notices.stopping(), name="notify: stopping")
    group.create_task(in_spite_of_all("notify", notices.status), name="notify: status")
    interval_s = watchdog_s(environment())
    if interval_s is not None:
        group.create_task(notices.alive(interval_s / SIGNS), name="notify: alive")


class Notices:
    """All that is told of one daemon."""

    def __init__(self, watched: Watched, place: NotifySocket) -> None:
        self._watched = watched
        self._place = place

    async def ready(self) -> None:
        """Say so once jupiterctl would be answered: this asks the same way."""
        await self._watched.ready.wait()
        while not await self._is_answered():  # noqa: ASYNC110 - the socket is outside of us
            await asyncio.sleep(AGAIN_S)
        self._place.tell(READY=1, STATUS=status_line(self._watched.status()))

    async def _is_answered(self) -> bool:
        try:
            async with ControlChannel(self._watched.state_dir) as channel:
                await channel.status("status")
        except JupiterError as error:
            log.warning("not_answered", extra={"reason": error.message})
            return False
        return True

    async def alive(self, interval_s: float) -> None:
        """Give a sign of life again and again."""
        while True:
            self._place.tell(WATCHDOG=1)
            await asyncio.sleep(interval_s)

    async def status(self) -> None:
        """Say what it does whenever that changes, seldom enough to be read."""
        await self._watched.ready.wait()
        last = ""
        while not self._watched.shutdown.is_asked:
            line = status_line(self._watched.status())
            if line != last:
                self._place.tell(STATUS=line)
            last = line
            await asyncio.sleep(STATUS_S)
        await asyncio.Event().wait()

    async def stopping(self) -> None:
        """Say that it stops, and as long as the loop gets on with it that it takes longer."""
        await self._watched.shutdown.wait()
        self._place.tell(STOPPING=1, STATUS="stopping: hands over and saves")
        while True:
            self._place.tell(EXTEND_TIMEOUT_USEC=int(EXTENSION_S * 1e6))
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
