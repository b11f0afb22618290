"""One daemon's run: its servers, its loops, and its end.

Owns every task and the sources of discovery. Decides nothing itself: the parts do (`wiring`).
"""

import logging

from jupiterd.daemon.app.local_sockets import answering_front_ends
from jupiterd.daemon.app.servers import server_of
from jupiterd.daemon.app.tasks import tasks_of
from jupiterd.daemon.app.wiring import Parts
from jupiterd.daemon.links.address_book import load_addresses
from jupiterd.daemon.links.unreachable_peers import UnreachablePeers
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.ids import short
from jupiterd.net.combined_discovery import merge
from jupiterd.net.mdns import by_mdns
from jupiterd.net.server import NodeServer
from jupiterd.net.static_discovery import StaticDiscovery
from jupiterd.ports import Discovery

log = logging.getLogger(__name__)

STOP_GRACE_S = 1.0


class Node(Parts):
    """One daemon's parts; `run` starts them and returns once `stop` was called."""

    def stop(self) -> None:
        """Request a graceful end."""
        self.stopping.ask()

    async def run(self) -> None:
        """Serve until `stop` is called.

        Raises:
            PortInUseError: another program has the port.
        """
        server = self._make_server()
        self.local_view.port = self.handshake.joining.port = await server.start()
        self.local_view.members_port = server.members_port
        try:
            async with answering_front_ends(self, self.group):
                await self._serve()
        finally:
            await server.stop(STOP_GRACE_S)

    async def _serve(self) -> None:
        discovery = _discovery_of(self.settings, self.static_discovery, self.handshake.unreached)
        await discovery.start(self.local_view.port)
        self.handshake.addresses.note_saved(load_addresses(self.state_dir.peers))
        for name, task in tasks_of(self, discovery):
            self.group.create_task(task, name=name)
        log.info(
            "ready", extra={"node": short(self.identity.node_id), "port": self.local_view.port}
        )
        self.ready.set()
        await self.stopping.wait()
        self.serving.local.close()
        await self.stopping.leave(
            self.settings.name, self.order_executor, self.replica, self.heartbeats
        )
        await self.serving.engines.close()
        await discovery.close()

    async def close(self) -> None:
        """Give everything back; for after `run`."""
        await self.peers.close()
        self.file.close()
        self.state_dir.close()

    def _make_server(self) -> NodeServer:
        return server_of(self)


def _discovery_of(
    settings: Settings, named: StaticDiscovery, unreached: UnreachablePeers
) -> Discovery:
    """Return what finds other nodes: multicast (mDNS), and the addresses that somebody named."""
    unreached.named = named.meant
    multicast = by_mdns(
        loopback_only=settings.local,
        interfaces=settings.interface,
        scope=settings.scope,
        announced=unreached.announced,
    )
    return merge(*multicast, named)
