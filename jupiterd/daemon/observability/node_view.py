"""What this node knows of the cluster beside the ledger, and what it says of itself.

Owns the picture that status shows and heartbeats carry. Changes nothing.
"""

import asyncio
import logging
import secrets
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgpack

from jupiterd.cluster.health.health import ClusterView, NodeView, WaitingView
from jupiterd.cluster.links.unreached import UNREACHED, Unreached, read_unreached, unreached_rows
from jupiterd.cluster.membership.admission import OPEN_COMMAND
from jupiterd.cluster.membership.membership import Liveness
from jupiterd.cluster.membership.pending_joins import PendingJoin, from_telemetry, to_plain
from jupiterd.cluster.membership.shared_addresses import shared_addresses
from jupiterd.cluster.values.gpu_load import GpuLoad, aligned, read_rows
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.machine_load import Load
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.progress_board import PhaseKey
from jupiterd.daemon.links.advertised_addresses import told_by_all
from jupiterd.daemon.links.clock_skew import clocks_apart
from jupiterd.daemon.links.heartbeat_stream import Description
from jupiterd.daemon.links.own_link import own_outage
from jupiterd.daemon.membership.trust import trusted_names, walked_in
from jupiterd.daemon.observability.alert_watch import AlertWatch
from jupiterd.daemon.observability.event_ring import EventRing
from jupiterd.daemon.observability.load_monitor import LoadMonitor
from jupiterd.daemon.observability.node_report import NodeReport
from jupiterd.daemon.observability.remote_reports import RemoteReports
from jupiterd.daemon.observability.telemetry_history import TelemetryHistory
from jupiterd.daemon.observability.telemetry_limits import short_telemetry
from jupiterd.daemon.planning.rank_order import ToldQualities, told_qualities
from jupiterd.daemon.queries.cluster.admission_document import leaders_word
from jupiterd.daemon.runtime.approval_words import spelled
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId, NodeId
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import interface_of, local_addresses, recent_addresses
from jupiterd.net.scopes import host_in, without_scope_in
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node

log = logging.getLogger(__name__)

LOOK_AT_ADDRESSES_S = 2.0
"""Asking the system for them takes a millisecond; a change must be told, but not at once."""


class LocalView:
    """One node's view of everybody, itself included."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._self_id = node.identity.node_id
        self.run_nonce = secrets.token_hex(8)
        """Drawn at each start: a peer that was started anew is linked anew."""
        self.port = 0
        self.members_port = 0
        """Where members alone are let in; see `membership.listening`."""
        self._last_about = peer_pb2.About()
        self._about_due_s = 0.0
        self._about_of: object = None
        """The port, the addresses and the links that it tells of."""
        self._left_out: frozenset[str] = frozenset()
        """What telemetry was ever too large for."""
        self.load_watch = LoadMonitor(
            node.hardware.gpus, node.settings.state_dir, lambda: node.pulse.worst_lag_s
        )
        self.histories = TelemetryHistory(node)
        self.own_report = NodeReport(node.runner)
        self.reports = RemoteReports(node)
        self.alerts = AlertWatch(node)
        self.events = EventRing(node)

    async def run(self) -> None:
        """Keep what needs looking at again and again."""
        async with asyncio.TaskGroup() as group:
            for part in (self.load_watch, self.histories, self.reports):
                group.create_task(part.run())

    def hardware_of(self, node: NodeId) -> Hardware | None:
        """Return a member's hardware, as it told us."""
        if node == self._self_id:
            return self._node.hardware
        peer = self._node.peers.get(node)
        return None if peer is None else peer.hardware

    def addresses(self) -> list[str]:
        """Return where our Peer service answers."""
        hosts = local_addresses(
            loopback_only=self._node.settings.local, interfaces=self._node.settings.interface
        )
        return [str(Address(host, self.port)) for host in hosts]

    def leader_addresses(self) -> list[str]:
        """Return where the leader's Peer service answers, as far as we know."""
        leader = self._node.pulse.election.leader
        peer = None if leader is None else self._node.peers.get(leader)
        return [] if peer is None else [without_scope_in(str(peer.address)), *peer.addresses]

    def live_progress(self, cycle: str) -> dict[str, Any] | None:
        """Return the leader's telemetry of a cycle's running phase."""
        return next((live for live in self.running() if live["cycle"] == cycle), None)

    def running(self) -> list[dict[str, Any]]:
        """Return the leader's telemetry of every running phase."""
        leading = self._node.leadership.leading
        if leading is not None:
            return leading.board.to_plain(now_s())
        leader = self._node.pulse.election.leader
        peer = None if leader is None else self._node.peers.get(leader)
        return [] if peer is None else peer.telemetry.get("live", [])

    def phases_before(self) -> dict[PhaseKey, float]:
        """Return when each phase began that others told of as leaders, who may be gone by now."""
        return {
            (CycleId(live["cycle"]), live["round"], Phase(live["phase"])): (
                peer.heard_s - live["elapsed_s"]
            )
            for peer in sorted(self._node.peers, key=attrgetter("heard_s"))
            for live in peer.telemetry.get("live", [])
        }

    def waiting(self) -> list[PendingJoin]:
        """Return who waits to be let in: the leader's own list, or what it told us of it."""
        members = self._node.journal.state.members
        leading = self._node.leadership.leading
        if leading is not None:
            seen = leading.waiting.shown(now_s())
        else:
            leader = self._node.pulse.election.leader
            peer = None if leader is None else self._node.peers.get(leader)
            seen = [] if peer is None else from_telemetry(peer.telemetry)
        return [waiting for waiting in seen if waiting.node not in members]

    def load_of(self, node: NodeId) -> Load:
        """Return how busy a member is, as far as that is known."""
        if node == self._self_id:
            return self.load_watch.load()
        peer = self._node.peers.get(node)
        return {} if peer is None else peer.telemetry.get("load", {})

    def gpu_loads_of(self, node: NodeId) -> tuple[GpuLoad, ...]:
        """Return how busy a member's accelerators are, one reading for each that it has."""
        if node == self._self_id:
            return self.load_watch.gpu_loads()
        peer, hardware = self._node.peers.get(node), self.hardware_of(node)
        told = read_rows(peer.telemetry.get("gpus")) if peer is not None else ()
        return aligned(told, len(hardware.gpus) if hardware is not None else 0)

    def liveness(self, node: NodeId) -> Liveness:
        """Return whether a member answers; this node does, to itself."""
        is_self = node == self._self_id
        return Liveness.ALIVE if is_self else self._node.pulse.membership.liveness(node)

    def cluster_view(self) -> ClusterView:
        """Return what health is judged by."""
        nodes = tuple(
            NodeView(
                node,
                admitted.name,
                self.liveness(node),
                hardware.engines if (hardware := self.hardware_of(node)) is not None else (),
                hardware.program if hardware is not None else "",
                self._node.greeter.cloned.addresses(node),
            )
            for node, admitted in self._node.journal.state.members.items()
        )
        applying = self._node.greeter.joining.applying
        return ClusterView(
            leader=self._node.pulse.election.leader,
            nodes=nodes,
            pending_reason=self._node.greeter.joining.shown_reason,
            sought=self._node.greeter.joining.sought,
            clone_at=self._node.journal.clones.seen_at,
            is_removed=self._node.is_removed,
            trusts_lan=self._node.settings.trust_lan,
            walked_in=walked_in(self._node.journal.state),
            asked=trusted_names(self._node.journal.state),
            behind=self._node.journal.behind(),
            contradictions=self._node.written.all_contradictions(),
            without_effect=self._node.written.notes(),
            is_local=self._node.settings.local,
            has_token=self._node.greeter.joining.token is not None,
            shared_addresses=tuple(shared_addresses(told_by_all(self._node))),
            clocks=clocks_apart(self._node),
            unreached_by=self._unreached_by(),
            unreached=self._node.greeter.unreached.found,
            outage=own_outage(self._node),
            disk_trouble=self._node.pulse.trouble or self._node.journal.trouble,
            pending_command=applying.command if applying.words else OPEN_COMMAND,
            waiting=tuple(
                WaitingView(seen.node, seen.name, spelled(seen.numbers)) for seen in self.waiting()
            ),
        )

    def _unreached_by(self) -> tuple[tuple[NodeId, tuple[Unreached, ...]], ...]:
        """Return whom other members that are alive can't reach, as they tell."""
        alive = self._node.alive()
        told = ((peer.node, peer.telemetry) for peer in self._node.peers if peer.node in alive)
        return tuple(
            (node, found) for node, said in told if (found := read_unreached(said.get(UNREACHED)))
        )

    def describe(self) -> Description:
        """Return what a heartbeat says of us; the pulse adds terms and ages."""
        told: dict[str, Any] = {"load": self.load_watch.load(), **self.alerts.told()}
        if gpus := self.load_watch.gpu_loads():
            told["gpus"] = [load.to_row() for load in gpus]
        if unreached := unreached_rows(self._node.greeter.unreached.found):
            told[UNREACHED] = unreached
        runs_gang = False
        leading = self._node.leadership.leading
        if leading is not None:
            if waiting := leading.waiting.shown(now_s()):
                told["waiting"] = to_plain(waiting)
            told["live"] = leading.board.to_plain(now_s())
            told["door"] = leaders_word(self._node, leading)
            runs_gang = any(live["gang"] for live in told["live"])
        return Description(self._about(), self._packed(told), runs_gang)

    def _packed(self, told: dict[str, Any]) -> bytes:
        """Return telemetry as it is sent; what had to be left out is said once."""
        short = short_telemetry(told)
        if news := frozenset(short.left_out) - self._left_out:
            self._left_out |= news
            log.warning("telemetry_shortened", extra={"left_out": ", ".join(short.left_out)})
        return short.raw

    def _about(self) -> peer_pb2.About:
        """Return what seldom changes: the same object as before, unless it has."""
        if now_s() >= self._about_due_s:
            self._about_due_s = now_s() + LOOK_AT_ADDRESSES_S
            links = told_qualities(self._node.peers)
            told_of = self.port, recent_addresses(), links
            if told_of != self._about_of:
                self._about_of, self._last_about = told_of, self._new_about(links)
        return self._last_about

    def _new_about(self, links: ToldQualities) -> peer_pb2.About:
        addresses = self.addresses()
        return peer_pb2.About(
            run_nonce=self.run_nonce,
            name=self._node.settings.name,
            addresses=map(without_scope_in, addresses),
            address_kinds=[kind_of(interface_of(host_in(text))) for text in addresses],
            hardware=msgpack.packb(self._node.hardware.to_plain()),
            links=msgpack.packb(links),
        )
