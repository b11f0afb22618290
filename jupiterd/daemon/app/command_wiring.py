"""How a daemon's commands are put together with the parts that carry them out.

Owns which part does which. Doesn't know what any verb does.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from jupiterd.cluster.health.health import judge
from jupiterd.cluster.membership.admission import Summary
from jupiterd.daemon.app.observers import Observers
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.artifacts.shipped_folders import ShippedFolders
from jupiterd.daemon.catalog.hub_fetches import HubFetches
from jupiterd.daemon.catalog.model_import import ModelImport
from jupiterd.daemon.commands.alarm_commands import AlarmView
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy, OwnMachine
from jupiterd.daemon.commands.cluster_leave import Leaving, leave
from jupiterd.daemon.commands.cluster_merge import ClusterMerge, Contacts, OwnCluster
from jupiterd.daemon.commands.commands import Commands, Lead
from jupiterd.daemon.commands.cycle_lifecycle import running_cycle
from jupiterd.daemon.commands.preparations import Machine, Preparations
from jupiterd.daemon.commands.verb import Answer, Verb
from jupiterd.daemon.commands.verb_table import Doers, verb_table
from jupiterd.daemon.cycles.generator_trial import try_generator
from jupiterd.daemon.executor.named_paths import named_paths
from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.link_measurement import LinkMeasurement
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.membership.handshake import Handshake
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.membership.trust import HandOver
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.scripts.allreduce_check import AllreduceCheck
from jupiterd.daemon.scripts.script_placement import ScriptPlacement, note_knocks
from jupiterd.daemon.scripts.shipping import ship_folder
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import ClusterId, NodeId
from jupiterd.net.identity import Identity
from jupiterd.net.static_discovery import StaticDiscovery
from jupiterd.protocol.commands.check_commands import CheckAllreduce, NoteFetch, TryGenerator
from jupiterd.protocol.commands.command import Command
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.member_commands import HandOverLead, LeaveCluster


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


def commands_of(daemon: Ordered) -> Commands:
    """Return what carries out a daemon's commands."""
    return Commands(table_of(daemon), daemon.replica, lead_of(daemon))


def table_of(daemon: Ordered) -> Mapping[str, Verb]:
    """Return every verb with what of a daemon carries it out."""
    before = Preparations(machine_of(daemon), daemon.file_policy, alarms_of(daemon))
    return verb_table(_doers_of(daemon), before)


def lead_of(daemon: Ordered) -> Lead:
    """Return how a daemon finds its leader."""

    async def demand(verb: str) -> None:
        await daemon.hand_over.demand(verb, daemon.commands.execute)

    return Lead(
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


def alarms_of(daemon: Ordered) -> AlarmView:
    """Return what a daemon sees of alarms."""
    return AlarmView(
        alarms=lambda: daemon.observers.alerts,
        state=lambda: daemon.replica.state,
        health=lambda: list(judge(daemon.observers.health.cluster_view())),
    )


def _doers_of(daemon: Ordered) -> Doers:
    checks, fetches = AllreduceCheck(), daemon.hub_fetches

    async def note_fetch(command: NoteFetch) -> Answer:
        fetches.note(command, now_s())
        return {}

    async def leave_cluster(command: LeaveCluster) -> Answer:
        name, joining = daemon.settings.name, daemon.handshake.joining
        here = Leaving(daemon.identity, name, daemon.replica, joining, daemon.summary)
        return await leave(here, command)

    async def hand_over(_command: HandOverLead) -> Answer:
        daemon.hand_over.begin()
        return {}

    async def check_allreduce(services: TermServices, command: CheckAllreduce) -> Answer:
        placement, calls, asked = services.placement, services.calls, command.to_plain()
        return await checks.run(placement, calls, services.connectivity, asked)

    async def attempt(services: TermServices, command: TryGenerator) -> Answer:
        return await try_generator(services.placement, services.calls, command.to_plain())

    return Doers(
        check_links=daemon.link_measurement.check,
        note_fetch=note_fetch,
        prepare_launch=daemon.script_placement.prepare,
        ship_folder=partial(ship_folder, daemon.shipped, daemon.peers),
        note_knocks=partial(note_knocks, daemon.worker_runner.knocks),
        leave_cluster=leave_cluster,
        hand_over=hand_over,
        merge_cluster=daemon.cluster_merge.merge,
        check_allreduce=check_allreduce,
        try_generator=attempt,
    )


def machine_of(daemon: Ordered) -> Machine:
    """Return what a daemon's machine does for commands that are given on it."""
    own = daemon.identity.node_id
    brought = ModelImport(own, daemon.artifact_cache.store, daemon.state_dir.spool)

    async def note_paths(command: Command) -> None:
        paths = await asyncio.to_thread(named_paths, command.to_plain())
        await asyncio.to_thread(daemon.worker_runner.offered.ask, paths)

    attempt = partial(_try_models, daemon)
    return Machine(own, note_paths, brought.bring_weights, brought.bring_models, attempt)


async def _try_models(daemon: Ordered, command: StartCycle) -> None:
    """See that the models of others can be used, unless no cycle can begin anyway."""
    if running_cycle(daemon.replica.state.cycles.values()) is not None:
        return
    for model, folder in (
        (command.generator, command.generator_folder),
        (command.judge, command.judge_folder),
    ):
        if model and folder is None:
            await daemon.commands.give(TryGenerator(generator=model))
