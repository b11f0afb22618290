"""What systemd is told of this daemon: ready, alive, what it does, and that it stops.

Owns when each is said. Doesn't know the socket's form, or how anything is done. The signs of life
come from the daemon's own loop: where that is stuck they end, and systemd starts it again.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from jupiterd.client.channel import ControlChannel
from jupiterd.daemon.observability.sinks import in_spite_of_all
from jupiterd.daemon.queries.cluster.status_document import status_document
from jupiterd.daemon.runtime.settings import environment
from jupiterd.errors import JupiterError
from jupiterd.service.notify_socket import NotifySocket, watchdog_s

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node

log = logging.getLogger(__name__)

SIGNS: Final = 3
"""Signs of life within the time in which one is wanted: one or two may come late."""

STATUS_S: Final = 2.0

EXTENSION_S: Final = 20.0
"""How much longer than now stopping may take, said again and again while it does."""

EXTEND_S: Final = 5.0

AGAIN_S: Final = 0.2


def tell_service_manager(node: "Node", group: asyncio.TaskGroup) -> None:
    """Start telling systemd, where it has started this process and wants to know."""
    place = NotifySocket.found_in(environment())
    if place is None:
        return
    notices = Notices(node, place)
    group.create_task(notices.ready(), name="notify: ready")
    group.create_task(notices.stopping(), name="notify: stopping")
    group.create_task(in_spite_of_all("notify", notices.status), name="notify: status")
    interval_s = watchdog_s(environment())
    if interval_s is not None:
        group.create_task(notices.alive(interval_s / SIGNS), name="notify: alive")


class Notices:
    """All that is told of one daemon."""

    def __init__(self, node: "Node", place: NotifySocket) -> None:
        self._node = node
        self._place = place

    async def ready(self) -> None:
        """Say so once jupiterctl would be answered: this asks the same way."""
        await self._node.ready.wait()
        while not await self._is_answered():  # noqa: ASYNC110 - the socket is outside of us
            await asyncio.sleep(AGAIN_S)
        self._place.tell(READY=1, STATUS=status_line(status_document(self._node)))

    async def _is_answered(self) -> bool:
        try:
            async with ControlChannel(self._node.state_dir.root) as channel:
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
        await self._node.ready.wait()
        last = ""
        while not self._node.is_closing:
            line = status_line(status_document(self._node))
            if line != last:
                self._place.tell(STATUS=line)
            last = line
            await asyncio.sleep(STATUS_S)
        await asyncio.Event().wait()

    async def stopping(self) -> None:
        """Say that it stops, and as long as the loop gets on with it that it takes longer."""
        await self._node.stopping.wait()
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
