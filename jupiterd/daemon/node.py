"""The composition root: one daemon, put together and kept running.

Owns every part and every task. Decides nothing by itself: the parts do.
"""

import asyncio
import contextlib
import json
import logging
import secrets
from typing import Any

import msgpack
import psutil

from jupiterd.cluster.admission import Summary
from jupiterd.cluster.facts import NodeAdmitted, RoundCommitted
from jupiterd.cluster.hardware import Hardware
from jupiterd.cluster.health import ClusterView, NodeView
from jupiterd.cluster.membership import Liveness
from jupiterd.daemon.artifact_service import ArtifactService
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.commands import Commands
from jupiterd.daemon.conductors import found, lead
from jupiterd.daemon.control_service import serve_control
from jupiterd.daemon.dispatcher import Dispatcher
from jupiterd.daemon.exchange import Exchange
from jupiterd.daemon.exports import Exports
from jupiterd.daemon.greeter import Greeter
from jupiterd.daemon.journal import Journal
from jupiterd.daemon.leading import Leading
from jupiterd.daemon.library import Library
from jupiterd.daemon.peer_service import PeerService
from jupiterd.daemon.peers import Peers
from jupiterd.daemon.probes import Probes
from jupiterd.daemon.progress import ProgressBoard
from jupiterd.daemon.pulse import Pulse
from jupiterd.daemon.settings import Settings
from jupiterd.daemon.state_dir import StateDir
from jupiterd.daemon.work_runner import Obedience, WorkRunner
from jupiterd.errors import JupiterError
from jupiterd.hardware.probe import probe
from jupiterd.ids import ArtifactId, ClusterId, NodeId, short
from jupiterd.net.discoveries import merge
from jupiterd.net.identity import Identity
from jupiterd.net.interfaces import local_addresses
from jupiterd.net.mdns import MdnsDiscovery
from jupiterd.net.server import PeerServer, listening_host
from jupiterd.net.static import StaticDiscovery
from jupiterd.ports import Address
from jupiterd.rpc import artifact_pb2_grpc, peer_pb2, peer_pb2_grpc
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)

STOP_GRACE_S = 1.0
AGAIN_S = 2.0
CLUSTER_LABEL = "jupiter"


class Node:
    """One daemon's parts; `run` starts them and returns when it is told to stop."""

    def __init__(self, settings: Settings, state_dir: StateDir) -> None:
        self.settings = settings
        self.state_dir = state_dir
        self.run_nonce = secrets.token_hex(8)
        self.identity = Identity.load_or_create(state_dir.key)
        self.hardware = probe()
        self.file = LedgerFile(state_dir.ledger)
        self.journal = Journal(self.identity, self.file)
        self.peers = Peers(self.identity)
        self.library = Library(ArtifactStore(state_dir.store), self.peers, self.alive)
        self.exports = Exports(state_dir.runs)
        self.runner = WorkRunner(state_dir, self.library, Obedience(self.file))
        self.board = ProgressBoard()
        self.commands = Commands(self)
        self.greeter = Greeter(
            self.identity, self.journal, self.peers, settings.name, self.summary, self._moved
        )
        self.leading: Leading | None = None
        self.port = 0
        self._stop = asyncio.Event()
        self._leading_task: asyncio.Task[None] | None = None

    @property
    def is_closing(self) -> bool:
        """Say whether this daemon has been told to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask for a graceful end."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until told to stop.

        Raises:
            PortInUseError: another program has the port.
        """
        host = listening_host(loopback_only=self.settings.local)
        server = PeerServer(self.identity, host, self.settings.port)
        server.add(lambda s: peer_pb2_grpc.add_PeerServicer_to_server(PeerService(self), s))
        artifacts = ArtifactService(self.library.store, self._is_member, self._replicate)
        server.add(lambda s: artifact_pb2_grpc.add_ArtifactsServicer_to_server(artifacts, s))
        discovery = merge(
            MdnsDiscovery(self.settings.local, self.settings.interface),
            StaticDiscovery(self.settings.peer_addresses()),
        )
        async with asyncio.TaskGroup() as group:
            self._assemble(group)
            self.port = self.greeter.port = await server.start()
            control = await serve_control(self)
            await discovery.start(self.port)
            for address in self._cached_peers():
                self.greeter.note(address)
            for name, task in (
                ("discovery", self.greeter.follow(discovery)),
                ("greeter", self.greeter.run()),
                ("pulse", self.pulse.run()),
                ("ledger", self._follow_ledger()),
                ("models", self._keep_models()),
            ):
                group.create_task(task, name=name)
            log.info("ready", extra={"node": short(self.identity.node_id), "port": self.port})
            await self._stop.wait()
            await self.pulse.say_goodbye()
            await discovery.close()
            await control.stop(0.2)
            await server.stop(STOP_GRACE_S)
            raise _Stopped
        # never reached: _Stopped cancels every task of the group

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
            open=state.window_open,
            leader=self.pulse.election.leader,
            term=self.pulse.election.term,
            members=max(1, len(state.members)),
        )

    def hardware_of(self, node: NodeId) -> Hardware | None:
        """Return a member's hardware, as it told us."""
        if node == self.identity.node_id:
            return self.hardware
        peer = self.peers.get(node)
        return None if peer is None else peer.hardware

    def addresses(self) -> list[str]:
        """Return where our Peer service answers."""
        hosts = local_addresses(
            loopback_only=self.settings.local, interfaces=self.settings.interface
        )
        return [str(Address(host, self.port)) for host in hosts]

    def leader_addresses(self) -> list[str]:
        """Return where the leader's Peer service answers, as far as we know."""
        leader = self.pulse.election.leader
        peer = None if leader is None else self.peers.get(leader)
        return [] if peer is None else [str(peer.address), *peer.addresses]

    def live_progress(self, cycle: str) -> dict[str, Any] | None:
        """Return the leader's telemetry of a cycle's running phase."""
        if self.leading is not None:
            running = self.board.to_plain(now_s())
        else:
            leader = self.pulse.election.leader
            peer = None if leader is None else self.peers.get(leader)
            running = [] if peer is None else peer.telemetry.get("live", [])
        return next((live for live in running if live["cycle"] == cycle), None)

    def load(self) -> dict[str, float]:
        """Return how busy this machine is."""
        memory = psutil.virtual_memory()
        return {"cpu_percent": psutil.cpu_percent(None), "ram_percent": memory.percent}

    def liveness(self, node: NodeId) -> Liveness:
        """Return whether a member answers; this node does, to itself."""
        is_self = node == self.identity.node_id
        return Liveness.ALIVE if is_self else self.pulse.membership.liveness(node)

    def cluster_view(self) -> ClusterView:
        """Return what health is judged by."""
        nodes = tuple(
            NodeView(
                node,
                admitted.name,
                self.liveness(node),
                hardware.engines if (hardware := self.hardware_of(node)) is not None else (),
            )
            for node, admitted in self.journal.state.members.items()
        )
        leader = self.pulse.election.leader
        return ClusterView(leader, nodes, self.greeter.pending_reason)

    def _assemble(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self.probes = Probes(group)
        self.exchange = Exchange(self.journal, self.peers, group)
        self.pulse = Pulse(
            self.identity.node_id, self.journal, self.peers, self.exchange, self.file, group
        )
        self.pulse.describe = self._describe
        self.pulse.on_lead = self._on_lead
        self.pulse.on_step_down = self._on_step_down
        self.pulse.set_stability(2 if self.hardware.on_mains else 1)

    def _describe(self) -> peer_pb2.Heartbeat:
        told: dict[str, Any] = {"hardware": self.hardware.to_plain(), "load": self.load()}
        runs_gang = False
        if self.leading is not None:
            told["live"] = self.board.to_plain(now_s())
            runs_gang = any(live["gang"] for live in told["live"])
        return peer_pb2.Heartbeat(
            run_nonce=self.run_nonce,
            name=self.settings.name,
            addresses=self.addresses(),
            runs_gang=runs_gang,
            telemetry=msgpack.packb(told),
        )

    def _is_member(self, node: NodeId) -> bool:
        return node in self.journal.state.members

    async def _replicate(self, artifact: ArtifactId, _asker: NodeId) -> None:
        await self.library.ensure(artifact)

    def _on_lead(self, term: int) -> None:
        if self.leading is not None:  # the same reign under a higher term: nothing is disturbed
            self.leading.term = term
            return
        self.leading = Leading(
            term=term,
            self_id=self.identity.node_id,
            journal=self.journal,
            dispatcher=Dispatcher(self.identity.node_id, self.runner, self.peers),
            library=self.library,
            peers=self.peers,
            board=self.board,
            probes=self.probes,
            alive=self.alive,
            hardware_of=self.hardware_of,
            exchange=self.exchange,
        )
        self._leading_task = self._group.create_task(self._lead(self.leading), name="lead")

    def _on_step_down(self, reason: str) -> None:
        if self.leading is not None:
            self.leading.is_over = True
            self.leading = None
        if self._leading_task is not None:
            self._leading_task.cancel(reason)

    async def _lead(self, leading: Leading) -> None:
        name = self.settings.name
        own = NodeAdmitted(
            self.identity.node_id, name, self.identity.certificate_pem, "founded the cluster"
        )
        while not leading.is_over:
            try:
                await self.exchange.unite(self.alive())
                await found(leading, CLUSTER_LABEL, own)
                await lead(leading)
            except Exception:
                log.exception("leading_failed")
                await asyncio.sleep(AGAIN_S)

    def _moved(self, leader: NodeId, cluster: ClusterId) -> None:
        """Take up another cluster: nothing of the old one's term or roster goes on."""
        self._on_step_down(f"joined cluster {short(cluster)}")
        self.pulse.reset()
        self.greeter.look_again()
        log.info("moved", extra={"cluster": short(cluster), "leader": short(leader)})

    async def _follow_ledger(self) -> None:
        """Do what new entries call for on every node: the roster and its addresses."""
        version = -1
        while True:
            version = await self.journal.changed_since(version)
            self.pulse.roster_changed()
            self._cache_peers()

    async def _keep_models(self) -> None:
        """Lay the model of each finished round where people find it."""
        version = -1
        while True:
            version = await self.journal.changed_since(version)
            await self._export_models()

    async def _export_models(self) -> None:
        for cycle in self.journal.state.cycles.values():
            for done in [fact for fact in cycle.line() if isinstance(fact, RoundCommitted)]:
                if self.exports.folder(cycle, done.round).is_dir():
                    continue
                with contextlib.suppress(JupiterError):
                    artifact = await self.library.ensure(ArtifactId(done.parent))
                    folder = self.exports.export(cycle, done.round, artifact)
                    log.info("model_exported", extra={"folder": str(folder)})

    def _cached_peers(self) -> list[Address]:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            rows = json.loads(self.state_dir.peers.read_text())
            return [Address(str(row["host"]), int(row["port"])) for row in rows]
        return []

    def _cache_peers(self) -> None:
        rows = [{"host": p.address.host, "port": p.address.port} for p in self.peers]
        if rows:
            draft = self.state_dir.peers.with_suffix(".tmp")
            draft.write_text(json.dumps(rows))
            draft.replace(self.state_dir.peers)


class _Stopped(Exception):  # noqa: N818 - the orderly end of a daemon
    """Ends the daemon's tasks."""


async def serve(settings: Settings, state_dir: StateDir, stop_on: Any) -> None:  # noqa: ANN401
    """Run one daemon until `stop_on(node)` has had its way, usually by signals."""
    node = Node(settings, state_dir)
    stop_on(node)
    try:
        await node.run()
    except* _Stopped:
        log.info("stopped")
    finally:
        await node.close()
