"""How one daemon is put together, from its key and its ledger up to what people see of it.

Owns which part is given what. Runs nothing: that is `node`'s.
"""

import asyncio
import logging
from collections.abc import Mapping

from jupiterd.cluster.membership.admission import Summary
from jupiterd.cluster.membership.cluster_merge import absorbed_by
from jupiterd.daemon.app.answers_wiring import Serving
from jupiterd.daemon.app.command_wiring import commands_of, file_policy_of, merge_of
from jupiterd.daemon.app.observers import observers_of
from jupiterd.daemon.app.own_hardware import own_hardware
from jupiterd.daemon.app.serving_wiring import endpoints_of, plan_of
from jupiterd.daemon.app.shutdown import Shutdown
from jupiterd.daemon.app.term_wiring import founding_of, services_of
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache, pace_of, store_of
from jupiterd.daemon.artifacts.model_exports import ModelExports
from jupiterd.daemon.artifacts.shipped_folders import ShippedFolders
from jupiterd.daemon.catalog.hub_fetches import HubFetches
from jupiterd.daemon.commands.verb import Verb
from jupiterd.daemon.cycles.leadership import Leadership
from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.address_book import load_addresses
from jupiterd.daemon.links.bandwidth_probe import BandwidthProbe
from jupiterd.daemon.links.heartbeat_stream import Description
from jupiterd.daemon.links.link_measurement import LinkMeasurement
from jupiterd.daemon.links.path_monitor import PathMonitor
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.membership.fencing import Fencing
from jupiterd.daemon.membership.handshake import Handshake, MeetingEffects
from jupiterd.daemon.membership.heartbeat_effects import HeartbeatEffects
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.membership.listening import Listening
from jupiterd.daemon.membership.trust import HandOver
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.scripts.readiness import Readiness
from jupiterd.daemon.scripts.running_scripts import RunningScripts
from jupiterd.daemon.scripts.script_placement import ScriptPlacement
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.identity import Identity
from jupiterd.net.refusals import Refusals
from jupiterd.net.static_discovery import StaticDiscovery
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)


class Parts:
    """One daemon's parts, each made with those before it."""

    def __init__(self, settings: Settings, state_dir: StateDir, group: asyncio.TaskGroup) -> None:
        """Read this node's key, its ledger and its hardware, and make every part.

        Raises:
            StateDirError: the key file can't be read or written.
            InvalidSettingError, RefusedError: models can't be served as the settings say.
        """
        self.settings, self.state_dir, self.group = settings, state_dir, group
        self.setting_sources: dict[str, str] = {}
        self.stopping, self.ready = Shutdown(), asyncio.Event()
        self.identity = Identity.load_or_create(state_dir.key)
        self.hardware = own_hardware(settings.devices)
        self.file = LedgerFile(state_dir.ledger)
        self.replica = Replica(self.identity, self.file)
        self.peers, self.refusals = Peers(self.identity), Refusals()
        self._make_membership()
        self._make_workers()
        self._make_link_monitors()
        self._make_scripts()
        self._make_joining()
        self._make_commands_and_views()
        self.serving_plan, self.endpoints = plan_of(settings), endpoints_of(self)

    def _make_membership(self) -> None:
        group, state_dir = self.group, self.state_dir
        self.anti_entropy = AntiEntropy(self.replica, self.peers, group)
        self.leadership = Leadership(founding_of(self), self._begin_term, group)
        effects = HeartbeatEffects(
            self._described, self.leadership.on_lead, self.leadership.on_step_down
        )
        self.heartbeats = HeartbeatLoop(
            self.replica, self.peers, self.anti_entropy, self.file, effects, group
        )
        self.replica.on_clone = self.heartbeats.fall_silent
        saved = load_addresses(state_dir.peers)
        self.listening = Listening(self.settings, self.replica, self.peers, self.refusals, saved)
        self.hand_over = HandOver(self.replica, self.heartbeats, self.step_aside, group)

    def _make_workers(self) -> None:
        settings, state_dir, group = self.settings, self.state_dir, self.group
        self.artifact_cache = ArtifactCache(
            store_of(state_dir.store, settings),
            self.peers,
            self.heartbeats.alive,
            group,
            pace_of(settings),
            lambda: self.order_executor.has_gang,
        )
        self.exports, self.curves = ModelExports(state_dir.runs), CurveFiles(state_dir.curves)
        self.shipped = ShippedFolders(state_dir, self.artifact_cache)
        self.worker_runner = WorkerRunner(
            state_dir, self.artifact_cache, self.replica, group, settings, self.hardware
        )
        self.order_executor = OrderExecutor(
            self.worker_runner, Fencing(self.file, self.heartbeats.ask_for_term), group
        )

    def _make_link_monitors(self) -> None:
        self.preflight_listener = PreflightListener(self.group, self.peers.paths)
        self.bandwidth_probe = BandwidthProbe()
        self.static_discovery = StaticDiscovery(self.settings.peer_addresses())
        self.path_monitor = PathMonitor(
            self.peers, self.own_port, self.heartbeats.proved_s, self.group
        )
        self.link_measurement = LinkMeasurement(
            self.identity.node_id, self.peers, self.bandwidth_probe, self.own_port
        )

    def _make_scripts(self) -> None:
        self.running_scripts = RunningScripts(
            self.settings,
            self.state_dir.root,
            self.replica,
            self.peers,
            self.worker_runner.refused_connections,
        )
        self.readiness = Readiness(self.settings, self.hardware)
        self.script_placement = ScriptPlacement(
            self.replica, self.peers, self.preflight_listener, self.readiness, self.heartbeats.alive
        )

    def _make_joining(self) -> None:
        self.cluster_merge = merge_of(self)
        self.handshake = Handshake(
            self.replica,
            self.peers,
            self.settings.name,
            self.summary,
            self.heartbeats.present,
            MeetingEffects(
                moved=self._moved,
                on_unlike=self.anti_entropy.reconcile,
                on_met=self.cluster_merge.follow,
                on_clone=self.heartbeats.fall_silent,
            ),
        )
        joining = self.handshake.joining
        joining.use_settings(self.settings.join, is_local=self.settings.local)

    def _table_of_verbs(self) -> Mapping[str, Verb]:
        from jupiterd.daemon.app.verb_wiring import table_of  # takes 3 MB, idle or not

        return table_of(self)

    def _make_commands_and_views(self) -> None:
        self.hub_fetches = HubFetches()
        self.file_policy = file_policy_of(self)
        self.commands = commands_of(self, self._table_of_verbs)
        self.local_view = LocalView(
            self.settings,
            self.hardware,
            self.replica,
            self.peers,
            self.heartbeats,
            lambda: self.leading,
        )
        self.serving = Serving(self)
        self.observers = observers_of(self)

    @property
    def leading(self) -> TermServices | None:
        """The parts of this node's term; None where another node leads."""
        return self.leadership.leading

    @property
    def is_removed(self) -> bool:
        """Say whether this node was a member of its cluster and isn't any more."""
        return self.local_view.is_removed

    @property
    def is_closing(self) -> bool:
        """Say whether this daemon's end was requested."""
        return self.stopping.is_requested

    def alive(self) -> frozenset[NodeId]:
        """Return the members that answer, this node included."""
        return self.heartbeats.alive()

    def summary(self) -> Summary:
        """Return our cluster's summary for strangers."""
        state = self.replica.state
        return Summary(
            cluster=self.replica.cluster,
            label=state.label,
            blank=state.blank,
            open=self.is_open,
            leader=self.heartbeats.election.leader,
            term=self.heartbeats.election.term,
            members=max(1, len(state.members)),
            absorbed=absorbed_by(state, self.replica.cluster),
        )

    @property
    def is_open(self) -> bool:
        """Say whether newcomers are let in, as far as this node has a say."""
        return self.replica.state.window_open or self.settings.trust_lan

    async def step_aside(self) -> None:
        """Let another node lead; stand again once one does, unless this node was removed."""
        await self.heartbeats.step_aside(lambda: not self.is_removed)

    def _described(self) -> Description:
        return self.observers.description.describe()

    def own_port(self) -> int:
        """Return the port at which anybody is answered; 0 until that is so."""
        return self.local_view.port

    def _moved(self, leader: NodeId, cluster: ClusterId) -> None:
        """Take up another cluster: nothing of the old one's term or roster goes on."""
        self.leadership.on_step_down(f"joined cluster {short(cluster)}")
        self.heartbeats.reset()
        self.handshake.addresses.look_again()
        log.info("moved", extra={"cluster": short(cluster), "leader": short(leader)})

    def _begin_term(self, number: int) -> TermServices:
        """Return the parts of the term of that number."""
        return services_of(self, number)
