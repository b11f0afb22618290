"""The ways between members, as a leader that brings gangs together needs them.

Owns which host of a member another one dials. Doesn't know gangs, or whether a way carries them.
"""

from dataclasses import dataclass

from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.links.peers import Peers
from jupiterd.ids import NodeId
from jupiterd.net.interfaces import source_address_toward


@dataclass(frozen=True)
class Connectivity:
    """This node's view of the ways."""

    self_id: NodeId
    peers: Peers
    probes: PreflightListener

    def host_of(self, node: NodeId, *, seen_from: NodeId) -> str:
        """Return the host of a member; our own is the address that leads to the asker."""
        if node != self.self_id:
            return self.peers.require(node).shared_host
        return source_address_toward(self.peers.require(seen_from).shared_host)[0]
