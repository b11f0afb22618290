"""How the parts of a term are put together, where this node leads.

Owns which part of a daemon each of them is given. Doesn't know when a term begins (`leadership`),
or what its parts do.
"""

from typing import Protocol

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.membership.pending_joins import PendingJoins
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy
from jupiterd.daemon.cycles.term_duties import Founding
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.net.identity import Identity


class LeadingDaemon(Protocol):
    """The parts of a daemon that those of a term are made with."""

    settings: Settings
    state_dir: StateDir
    identity: Identity
    replica: Replica
    peers: Peers
    anti_entropy: AntiEntropy
    heartbeats: HeartbeatLoop
    artifact_cache: ArtifactCache
    order_executor: OrderExecutor
    preflight_listener: PreflightListener
    file_policy: ClusterFilePolicy
    local_view: LocalView


def founding_of(daemon: LeadingDaemon) -> Founding:
    """Return what a daemon founds a cluster with, where it leads one without a founder."""
    own, certificate = daemon.identity.node_id, daemon.identity.certificate_pem
    admitted = NodeAdmitted(own, daemon.settings.name, certificate, "founded the cluster")
    return Founding(admitted, daemon.settings.closed)


def services_of(daemon: LeadingDaemon, number: int) -> TermServices:
    """Return the parts of the term of that number."""
    own, replica, heartbeats = daemon.identity.node_id, daemon.replica, daemon.heartbeats
    term = Term(number, own, replica, daemon.anti_entropy, heartbeats.alive, heartbeats.check_awake)
    alive, answering = heartbeats.alive, heartbeats.answering
    machines = Machines(own, replica, daemon.peers, alive, answering, daemon.local_view.hardware_of)
    placement = Placement(machines, replica, daemon.file_policy.roles)
    dispatcher = Dispatcher(own, daemon.order_executor, daemon.peers)
    return TermServices(
        term=term,
        board=ProgressBoard(daemon.local_view.phases_before()),
        placement=placement,
        reach=ArtifactReach(term, machines, daemon.artifact_cache),
        calls=WorkCalls(term, machines, placement, dispatcher),
        connectivity=Connectivity(own, daemon.peers, daemon.preflight_listener),
        admissions=Admissions(PendingJoins(replica.cluster, own, now_s())),
        micro_batch_file=daemon.state_dir.micro_batches,
    )
