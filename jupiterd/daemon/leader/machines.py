"""The members' machines as the leader sees them: what they have, and which of them are well.

Owns whom the leader passes over for a moment. Doesn't know what work is given to whom.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId, short
from jupiterd.versions import Kinship, kinship

TROUBLE_S = 5.0
"""How long a node whose stream broke is passed over: membership needs about as long to judge."""


@dataclass
class Machines:
    """The members of the cluster, for one term."""

    self_id: NodeId
    replica: Replica
    peers: Peers
    alive: Callable[[], frozenset[NodeId]]
    answering: Callable[[], frozenset[NodeId]]
    """Those of them that were heard just now: for no other one does anybody wait."""
    hardware_of: Callable[[NodeId], Hardware | None]

    def names(self) -> dict[NodeId, str]:
        """Return the members with the names that people see."""
        return {
            node: peer.name if (peer := self.peers.get(node)) and peer.name else fact.name
            for node, fact in self.replica.state.members.items()
        }

    def name_of(self, node: NodeId) -> str:
        """Return the name that people see, even of a member that was just removed."""
        return self.names().get(node, short(node))

    def program_of(self, node: NodeId) -> str:
        """Return a member's version of Jupiter; empty where it hasn't told."""
        hardware = self.hardware_of(node)
        return "" if hardware is None else hardware.program

    def is_alike(self, node: NodeId) -> bool:
        """Say whether a member's version is so much like ours that it may be given work."""
        return kinship(self.program_of(node), self.program_of(self.self_id)) is Kinship.ALIKE

    def has_engine(self, node: NodeId) -> bool:
        """Say whether a member has a machine learning library."""
        hardware = self.hardware_of(node)
        return hardware is not None and bool(hardware.engines)

    def well_nodes(self) -> list[NodeId]:
        """Return members that answer and aren't in trouble, in the order of their ids."""
        return sorted(node for node in self.answering() if not self._is_troubled(node))

    def fit_nodes(self) -> list[NodeId]:
        """Return those of them that may be given work: no work crosses versions."""
        return [node for node in self.well_nodes() if self.is_alike(node)]

    def pass_over(self, node: NodeId) -> None:
        """Give a node no work for a while: it doesn't answer just now."""
        peer = self.peers.get(node)
        if peer is not None:
            peer.troubled_s = now_s()

    def _is_troubled(self, node: NodeId) -> bool:
        peer = self.peers.get(node)
        return node != self.self_id and (peer is None or now_s() - peer.troubled_s < TROUBLE_S)
