"""The composition root: one daemon, put together and kept running.

Owns every part and every task. Decides nothing by itself: the parts do.
"""

import asyncio
import logging

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.membership.admission import Summary
from jupiterd.cluster.membership.cluster_merge import absorbed_by
from jupiterd.cluster.membership.pending_joins import PendingJoins
from jupiterd.daemon.api.peer_service import PeerService
from jupiterd.daemon.app.local_sockets import answering_front_ends
from jupiterd.daemon.app.on_ledger_change import follow_ledger
from jupiterd.daemon.app.shutdown import Shutdown
from jupiterd.daemon.artifacts.artifact_cache import library_of
from jupiterd.daemon.artifacts.artifact_service import ArtifactService
from jupiterd.daemon.artifacts.model_exports import ModelExports
from jupiterd.daemon.artifacts.model_publisher import ModelPublisher
from jupiterd.daemon.artifacts.retention import retention_of
from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy
from jupiterd.daemon.commands.cluster_merge import ClusterMerge
from jupiterd.daemon.commands.commands import Commands
from jupiterd.daemon.cycles.leadership import Leadership
from jupiterd.daemon.cycles.term_duties import Founding
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.executor.gang_holder import GangHolder
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.leader.leading import Leading
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.re_replication import ReReplication
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.address_book import keep_addresses, load_addresses
from jupiterd.daemon.links.bandwidth_probe import BandwidthProbe
from jupiterd.daemon.links.discovery import discovery_of
from jupiterd.daemon.links.path_monitor import PathMonitor
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.membership.fencing import Fencing
from jupiterd.daemon.membership.handshake import Handshake
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.membership.listening import Listening
from jupiterd.daemon.membership.stability_monitor import watch_steadiness
from jupiterd.daemon.membership.trust import HandOver, keep_saying_yes
from jupiterd.daemon.membership.version_guard import watch_versions
from jupiterd.daemon.observability.node_view import LocalView
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.queries.cycle.round_table_keeper import RoundTableKeeper
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.scripts.running_scripts import RunningScripts
from jupiterd.daemon.scripts.script_service import add_scripts
from jupiterd.hardware.probe import probe
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.artifact_wire import add_artifacts
from jupiterd.net.identity import Identity
from jupiterd.net.refusals import Refusals
from jupiterd.net.server import NodeServer
from jupiterd.net.static_discovery import StaticDiscovery
from jupiterd.rpc import peer_pb2_grpc
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)

STOP_GRACE_S = 1.0


class Node:
    """One daemon's parts; `run` starts them and returns when it is told to stop."""

    def __init__(self, settings: Settings, state_dir: StateDir, group: asyncio.TaskGroup) -> None:
        self.settings, self.state_dir, self._group = settings, state_dir, group
        self.setting_sources: dict[str, str] = {}
        self.stopping, self.ready = Shutdown(), asyncio.Event()
        self.identity = Identity.load_or_create(state_dir.key)
        self.hardware, self.file = probe(settings.devices), LedgerFile(state_dir.ledger)
        self.journal = Replica(self.identity, self.file)
        self.peers, self.parts = Peers(self.identity), RunningScripts(self)
        self.refusals, self.library = Refusals(), library_of(self, group)
        self.exports, self.curves = ModelExports(state_dir.runs), CurveFiles(state_dir.curves)
        self.runner = WorkerRunner(
            state_dir, self.library, self.journal, group, settings, self.hardware
        )
        obedience, own = Fencing(self.file), self.identity.node_id
        self.holder = GangHolder(self.runner, obedience, group)
        self.merging, self.measuring = ClusterMerge(self), BandwidthProbe()
        self.commands, self.exchange = Commands(self), AntiEntropy(self.journal, self.peers, group)
        self.probes = PreflightListener(group, self.peers.ways)
        self.hand_over = HandOver(self, group)
        self.greeter = Handshake(
            self.identity, self.journal, self.peers, settings.name, self.summary, self._moved
        )
        self.listening = Listening(self)
        self.greeter.joining.told(settings.join, is_local=settings.local)
        self.leadership = Leadership(self._founding(), self._begin_reign, group)
        self.pulse = HeartbeatLoop(own, self.journal, self.peers, self.exchange, self.file, group)
        self.outlook = LocalView(self)
        self.named = StaticDiscovery(settings.peer_addresses())
        self.written = ClusterFilePolicy(self)
        self.path_watch = PathMonitor(
            self.peers, lambda: self.outlook.port, self.pulse.proved_s, group
        )
        self.greeter.on_unlike = self.exchange.reconcile
        self.greeter.on_met = self.merging.follow
        self.greeter.present = self.pulse.present
        self.greeter.on_clone = self.journal.on_clone = self.pulse.fall_silent
        self.pulse.describe = self.outlook.describe
        obedience.on_outranked = self.pulse.ask_for_term
        self.pulse.on_lead = self.leadership.on_lead
        self.pulse.on_step_down = self.leadership.on_step_down

    @property
    def leading(self) -> Leading | None:
        """What a leader's shells share; None where another node leads."""
        return self.leadership.leading

    @property
    def is_removed(self) -> bool:
        """Say whether this node was a member of its cluster and isn't any more."""
        state, own = self.journal.state, self.identity.node_id
        return own not in state.members and state.roster.known(own) is not None

    @property
    def is_closing(self) -> bool:
        """Say whether this daemon has been told to stop."""
        return self.stopping.is_asked

    def stop(self) -> None:
        """Ask for a graceful end."""
        self.stopping.ask()

    async def run(self) -> None:
        """Serve until told to stop.

        Raises:
            PortInUseError: another program has the port.
        """
        server = self._make_server()
        self.outlook.port = self.greeter.joining.port = await server.start()
        self.outlook.members_port = server.members_port
        try:
            async with answering_front_ends(self, self._group):
                await self._serve()
        finally:
            await server.stop(STOP_GRACE_S)

    async def _serve(self) -> None:
        discovery = discovery_of(self)
        await discovery.start(self.outlook.port)
        self.greeter.addresses.note_kept(load_addresses(self.state_dir.peers))
        for name, task in (
            ("discovery", self.greeter.follow(discovery)),
            ("greeter", self.greeter.run()),
            ("pulse", self.pulse.run()),
            ("paths", self.path_watch.run()),
            ("steadiness", watch_steadiness(self)),
            ("versions", watch_versions(self)),
            ("addresses", keep_addresses(self.state_dir.peers, self.peers.ways)),
            ("ledger", follow_ledger(self)),
            ("compaction", self.journal.keep_compact()),
            ("models", ModelPublisher(self.journal, self.library, self.exports).run()),
            ("round table", RoundTableKeeper(self.journal, self.state_dir.round_table).run()),
            ("upkeep", ReReplication(self).run()),
            ("outlook", self.outlook.run()),
            ("cluster file", self.written.run()),
            ("retention", retention_of(self).run()),
            ("scripts", self.parts.watch()),
            ("standing yes", keep_saying_yes(self)),
        ):
            self._group.create_task(task, name=name)
        log.info("ready", extra={"node": short(self.identity.node_id), "port": self.outlook.port})
        self.ready.set()
        await self.stopping.wait()
        await self.stopping.leave(self)
        await discovery.close()

    async def close(self) -> None:
        """Give everything back; for after `run`."""
        await self.peers.close()
        self.file.close()
        self.state_dir.close()

    def alive(self) -> frozenset[NodeId]:
        """Return the members that answer, this node included."""
        return self.pulse.alive()

    def summary(self) -> Summary:
        """Return what we tell strangers of our cluster."""
        state = self.journal.state
        return Summary(
            cluster=self.journal.cluster,
            label=state.label,
            blank=state.blank,
            open=self.is_open,
            leader=self.pulse.election.leader,
            term=self.pulse.election.term,
            members=max(1, len(state.members)),
            absorbed=absorbed_by(state, self.journal.cluster),
        )

    def _make_server(self) -> NodeServer:
        server, peers = self.listening.server(), PeerService(self)
        server.add(lambda s: peer_pb2_grpc.add_PeerServicer_to_server(peers, s))
        artifacts = ArtifactService(self.library, self.is_member)
        server.add(lambda s: add_scripts(self, s))
        server.add(lambda s: add_artifacts(artifacts, s))
        return server

    @property
    def is_open(self) -> bool:
        """Say whether newcomers are let in, as far as this node has a say."""
        return self.journal.state.window_open or self.settings.trust_lan

    def _founding(self) -> Founding:
        node, certificate = self.identity.node_id, self.identity.certificate_pem
        own = NodeAdmitted(node, self.settings.name, certificate, "founded the cluster")
        return Founding(own, self.settings.closed)

    def _begin_reign(self, term: int) -> Leading:
        return Leading(
            term=term,
            self_id=self.identity.node_id,
            journal=self.journal,
            dispatcher=Dispatcher(self.identity.node_id, self.holder, self.peers),
            library=self.library,
            peers=self.peers,
            board=ProgressBoard(self.outlook.phases_before()),
            probes=self.probes,
            alive=self.alive,
            answering=self.pulse.answering,
            hardware_of=self.outlook.hardware_of,
            exchange=self.exchange,
            waiting=PendingJoins(self.journal.cluster, self.identity.node_id, now_s()),
            check_awake=self.pulse.check_awake,
            written_roles=self.written.roles,
        )

    def is_member(self, node: NodeId) -> bool:
        """Say whether a node is a member of this node's cluster."""
        return node in self.journal.state.members

    def _moved(self, leader: NodeId, cluster: ClusterId) -> None:
        """Take up another cluster: nothing of the old one's term or roster goes on."""
        self.leadership.on_step_down(f"joined cluster {short(cluster)}")
        self.pulse.reset()
        self.greeter.addresses.look_again()
        log.info("moved", extra={"cluster": short(cluster), "leader": short(leader)})
