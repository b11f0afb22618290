"""What the health of the cluster is judged by, as this node sees it.

Owns putting it together. Changes nothing, and judges nothing (`cluster.health`).
"""

from typing import Protocol

from jupiterd.cluster.health.health import ClusterView, NodeView, WaitingView
from jupiterd.cluster.links.unreached import UNREACHED, Unreached, read_unreached
from jupiterd.cluster.membership.admission import OPEN_COMMAND
from jupiterd.cluster.membership.shared_addresses import shared_addresses
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.advertised_addresses import own_advertisement, peer_advertisements
from jupiterd.daemon.links.clock_skew import clocks_apart, proved_offsets
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.membership.handshake import Handshake
from jupiterd.daemon.membership.trust import trusted_names, walked_in
from jupiterd.daemon.runtime.approval_words import spelled
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import NodeId


class ClusterFileNotes(Protocol):
    """What is to be said of this machine's cluster file."""

    def contradictions(self, node: NodeId) -> tuple[str, ...]:
        """Return what is written of a member and isn't so."""
        ...

    def all_contradictions(self) -> tuple[str, ...]:
        """Return the same of everybody."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Return what in the file has no effect, and why."""
        ...


class HealthView:
    """One node's view of all that may be wrong."""

    def __init__(
        self,
        view: LocalView,
        settings: Settings,
        replica: Replica,
        peers: Peers,
        handshake: Handshake,
        cluster_file: ClusterFileNotes,
    ) -> None:
        self._view, self._settings = view, settings
        self._replica, self._peers = replica, peers
        self._handshake, self._cluster_file = handshake, cluster_file

    def cluster_view(self) -> ClusterView:
        """Return what health is judged by."""
        view, joining, state = self._view, self._handshake.joining, self._replica.state
        applying = joining.approval
        return ClusterView(
            leader=view.leader,
            nodes=self._nodes(),
            pending_reason=joining.shown_reason,
            wanted_cluster=joining.token_wait,
            clone_at=self._replica.clones.seen_at,
            is_removed=view.is_removed,
            trusts_lan=self._settings.trust_lan,
            walked_in=walked_in(state),
            approving_machines=trusted_names(state),
            behind=self._replica.behind(),
            contradictions=self._cluster_file.all_contradictions(),
            without_effect=self._cluster_file.notes(),
            is_local=self._settings.local,
            has_token=joining.token is not None,
            shared_addresses=self._shared_addresses(),
            clocks=self._clocks(),
            unreached_by=self._unreached_by(),
            unreached=self._handshake.unreached.found,
            outage=view.outage(),
            disk_trouble=view.disk_trouble,
            pending_command=applying.command if applying.words else OPEN_COMMAND,
            waiting=tuple(
                WaitingView(seen.node, seen.name, spelled(seen.numbers)) for seen in view.waiting()
            ),
        )

    def _nodes(self) -> tuple[NodeView, ...]:
        view = self._view
        return tuple(
            NodeView(
                node,
                admitted.name,
                view.liveness(node),
                hardware.engines if (hardware := view.hardware_of(node)) is not None else (),
                hardware.program if hardware is not None else "",
                self._handshake.cloned.addresses(node),
            )
            for node, admitted in self._replica.state.members.items()
        )

    def _shared_addresses(self) -> tuple[tuple[str, str, str], ...]:
        view = self._view
        own = own_advertisement(view.name, view.hardware.host, view.addresses())
        return tuple(shared_addresses([own, *peer_advertisements(self._peers, view.alive())]))

    def _clocks(self) -> tuple[tuple[str, str], ...]:
        names = {node: admitted.name for node, admitted in self._replica.state.members.items()}
        offsets_s = proved_offsets(self._peers, self._view.alive())
        return clocks_apart(self._view.own, self._view.name, names, offsets_s)

    def _unreached_by(self) -> tuple[tuple[NodeId, tuple[Unreached, ...]], ...]:
        """Return whom other members that are alive report that they can't reach."""
        alive = self._view.alive()
        telemetry_of = ((peer.node, peer.telemetry) for peer in self._peers if peer.node in alive)
        return tuple(
            (node, found)
            for node, said in telemetry_of
            if (found := read_unreached(said.get(UNREACHED)))
        )
