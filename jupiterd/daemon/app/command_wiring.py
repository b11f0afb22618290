"""How a daemon's commands find its leader, and what they share with its other parts.

Owns these parts, which are there from the start. Doesn't know what any verb does, or which part
carries it out (`verb_wiring`).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from jupiterd.cluster.membership.admission import Summary
from jupiterd.daemon.app.observers import Observers
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.shipped_folders import ShippedFolders
from jupiterd.daemon.catalog.hub_fetches import HubFetches
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy, OwnMachine
from jupiterd.daemon.commands.cluster_merge import ClusterMerge, Contacts, OwnCluster
from jupiterd.daemon.commands.commands import Commands, LeaderAccess
from jupiterd.daemon.commands.verb import Verb
from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.link_measurement import LinkMeasurement
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.membership.handshake import Handshake
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.membership.trust import HandOver
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.scripts.script_placement import ScriptPlacement
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import ClusterId, NodeId
from jupiterd.net.identity import Identity
from jupiterd.net.static_discovery import StaticDiscovery


class Ordered(Protocol):
    """The parts of a daemon that have to do with commands."""

    settings: Settings
    state_dir: StateDir
    identity: Identity
    replica: Replica
    peers: Peers
    static_discovery: StaticDiscovery
    heartbeats: HeartbeatLoop
    hand_over: HandOver
    handshake: Handshake
    artifact_cache: ArtifactCache
    worker_runner: WorkerRunner
    shipped: ShippedFolders
    hub_fetches: HubFetches
    link_measurement: LinkMeasurement
    script_placement: ScriptPlacement
    cluster_merge: ClusterMerge
    file_policy: ClusterFilePolicy
    commands: Commands
    local_view: LocalView
    observers: Observers

    @property
    def leading(self) -> TermServices | None:
        """The term; None where another node leads."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether newcomers are let in."""
        ...

    def summary(self) -> Summary:
        """Return the cluster's summary for strangers."""
        ...


def merge_of(daemon: Ordered) -> ClusterMerge:
    """Return a daemon's part in merges; it meets nobody before all parts are there."""

    def term() -> Term | None:
        return None if daemon.leading is None else daemon.leading.term

    def leader_addresses() -> list[str]:
        return daemon.local_view.leader_addresses()

    def look_again() -> None:
        daemon.handshake.addresses.look_again()

    def moved(leader: NodeId, cluster: ClusterId) -> None:
        daemon.handshake.joining.moved(leader, cluster)

    own = OwnCluster(
        identity=daemon.identity,
        replica=daemon.replica,
        summary=daemon.summary,
        is_open=lambda: daemon.is_open,
        trusts_lan=daemon.settings.trust_lan,
        term=term,
        leader_addresses=leader_addresses,
        check_leader=daemon.hand_over.check_leader,
    )
    return ClusterMerge(own, Contacts(lambda: daemon.handshake.seen.outsiders, look_again, moved))


def file_policy_of(daemon: Ordered) -> ClusterFilePolicy:
    """Return what the cluster file of a daemon's machine decides."""

    def addresses() -> list[str]:
        return daemon.local_view.addresses()

    own = OwnMachine(
        daemon.identity.node_id,
        lambda: daemon.local_view.hardware,
        daemon.static_discovery,
        lambda: daemon.local_view.port,
        addresses,
    )
    return ClusterFilePolicy(daemon.settings, own, daemon.replica, daemon.peers)


def commands_of(daemon: Ordered, table: Callable[[], Mapping[str, Verb]]) -> Commands:
    """Return what carries out a daemon's commands; the table is made at the first of them."""
    return Commands(table, daemon.replica, leader_access_of(daemon))


def leader_access_of(daemon: Ordered) -> LeaderAccess:
    """Return how a daemon finds its leader."""

    async def demand(verb: str) -> None:
        await daemon.hand_over.demand(verb, daemon.commands.execute)

    return LeaderAccess(
        node=daemon.identity.node_id,
        services=lambda: daemon.leading,
        leader=partial(_leader_of, daemon),
        check_awake=daemon.heartbeats.check_awake,
        is_heard=daemon.hand_over.is_possible,
        demand_trusted=demand,
    )


def _leader_of(daemon: Ordered) -> Peer | None:
    leader = daemon.heartbeats.election.leader
    return None if leader is None else daemon.peers.get(leader)
