"""The two ports at which this node answers: one for members alone, one for anybody.

Owns what the ports know of the cluster: whose leaves are members', and at which addresses members
are known to be; and what is reported when somebody is turned away. Doesn't own any socket.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.membership.call_rights import open_calls
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.refused_connections import RefusedConnections
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.errors import BadCertificateError
from jupiterd.ids import NodeId
from jupiterd.net.call_guard import CallGuard
from jupiterd.net.identity import leaf_of
from jupiterd.net.interfaces import LOOPBACK, recent_addresses
from jupiterd.net.open_port.callers import Callers
from jupiterd.net.open_port.connection_limits import ConnectionLimits
from jupiterd.net.open_port.proxy import Proxy
from jupiterd.net.refusals import Refusals
from jupiterd.net.scopes import without_scope
from jupiterd.net.server import NodeServer, listening_host
from jupiterd.ports import Address
from jupiterd.protocol.frames import ConnectionsRefused

CROWDED: Final = "port-crowded"
"""Code of the alarm, and key of its telemetry."""

REFUSED: Final = "too-many-connections"
"""Of the count in the status and the metrics."""

OWN_MACHINE: Final = frozenset({LOOPBACK, "::1"})

LOOK_AGAIN_S: Final = 1.0
"""Connections may come by the thousand; addresses of members change seldom."""


class Listening:
    """What both ports know of the cluster."""

    def __init__(
        self,
        settings: Settings,
        replica: Replica,
        peers: Peers,
        refusals: Refusals,
        saved: Iterable[Address],
    ) -> None:
        """`saved`: where members answered before this start."""
        self._settings, self._replica, self._peers = settings, replica, peers
        self._refusals = refusals
        self.callers = Callers()
        self.crowding = RefusedConnections("port_crowded")
        """Who had more connections at the open port than an address may have, of the last hour."""
        self._saved = frozenset(each.host for each in saved)
        self._hosts, self._looked_s = frozenset[str](), float("-inf")
        self._members: Mapping[NodeId, NodeAdmitted] = {}
        self._leaves = frozenset[bytes]()
        replica.on_change = self._note_members
        self._note_members()

    def server(self) -> NodeServer:
        """Return the servers, without services."""
        host = listening_host(loopback_only=self._settings.local)
        border = CallGuard(self.is_member, open_calls(), self._refusals, self.callers)
        front = Proxy(ConnectionLimits(self._is_members), self.callers, self._refused)
        place = host, self._settings.port
        return NodeServer(self._replica.identity, place, border, front, self._certificates)

    def is_member(self, node: NodeId) -> bool:
        """Say whether a node is a member of this node's cluster."""
        return node in self._replica.state.members

    def _certificates(self) -> frozenset[bytes]:
        """Return the members' leaves; gRPC's threads ask, so nothing is worked out here."""
        return self._leaves

    def _note_members(self) -> None:
        members = self._replica.state.members
        if members is self._members:
            return
        leaves: set[bytes] = set()
        for node, admitted in members.items():
            try:
                leaves.add(leaf_of(admitted.certificate_pem, node))
            except BadCertificateError:
                continue  # such a member comes to the open port
        self._members, self._leaves = members, frozenset(leaves)

    def _is_members(self, host: str) -> bool:
        if now_s() - self._looked_s > LOOK_AGAIN_S:
            self._looked_s, self._hosts = now_s(), self._hosts_of_members()
        return without_scope(host) in self._hosts

    def _hosts_of_members(self) -> frozenset[str]:
        """Return where members answer, answered before this start, or have called from.

        Where a member only says that it is counts for nothing: it might name any number. This
        machine is one such place: several daemons on a machine say hello to each other all at once.
        """
        hosts = {*self._saved, *OWN_MACHINE, *self.callers.hosts(self.is_member)}
        hosts |= {address.host for address in self._peers.paths()}
        with suppress(OSError):
            hosts |= {address for _, address in recent_addresses()}
        return frozenset(map(without_scope, hosts))

    def _refused(self, host: str, reason: str) -> None:
        self._refusals.count(REFUSED, host, reason)
        self.crowding.note(ConnectionsRefused(1, [host]))
