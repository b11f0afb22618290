"""What this node knows of every member besides the ledger, itself included.

Owns putting together what members' heartbeats say, what the leader says of its term, and what this
node knows of itself. Changes nothing. Doesn't know what is wrong with the cluster (`health_view`),
or what heartbeats say of this node (`observability.heartbeat_description`).
"""

import secrets
from collections.abc import Callable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Protocol

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.ledger.tokens import TokenTimer
from jupiterd.cluster.links.own_link import Outage
from jupiterd.cluster.membership.admission_policy import closes_by_itself
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.cluster.membership.pending_joins import PendingJoin, from_telemetry
from jupiterd.cluster.values.gpu_load import GpuLoad, aligned, read_rows
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.machine_load import Load
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.progress_board import PhaseKey, ProgressBoard
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.own_link import own_outage
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.view.load_monitor import LoadMonitor
from jupiterd.ids import CycleId, NodeId, short
from jupiterd.net.interfaces import local_addresses
from jupiterd.net.scopes import without_scope_in
from jupiterd.ports import Address

MAX_TIMED_TOKENS: Final = 16
"""Telemetry is small: a follower doesn't know the time left of more tokens."""


class OwnTerm(Protocol):
    """What a leader knows in its term and its heartbeats report."""

    @property
    def board(self) -> ProgressBoard:
        """The phases that run."""
        ...

    @property
    def admissions(self) -> Admissions:
        """Who wants to be let in, and how long the door and tokens are in force."""
        ...


class LocalView:
    """One node's view of everybody, itself included."""

    def __init__(
        self,
        settings: Settings,
        hardware: Hardware,
        replica: Replica,
        peers: Peers,
        heartbeats: HeartbeatLoop,
        own_term: Callable[[], OwnTerm | None],
    ) -> None:
        """`own_term` returns None where another node leads."""
        self.own = replica.node
        self.name = settings.name
        self.hardware = hardware
        self._settings = settings
        self._replica, self._peers, self._heartbeats = replica, peers, heartbeats
        self._own_term = own_term
        self.run_nonce = secrets.token_hex(8)
        """Drawn at each start: peers link a restarted daemon again."""
        self.port = 0
        self.members_port = 0
        """Where members alone are let in; see `membership.listening`."""
        self.load_watch = LoadMonitor(
            hardware.gpus, settings.state_dir, lambda: heartbeats.worst_lag_s
        )

    @property
    def leader(self) -> NodeId | None:
        """Who leads, as far as this node knows."""
        return self._heartbeats.election.leader

    @property
    def term(self) -> int:
        """The highest term that this node knows of."""
        return self._heartbeats.election.term

    @property
    def own_term(self) -> OwnTerm | None:
        """The term in which this node leads; None where another one does."""
        return self._own_term()

    @property
    def loop_lag_s(self) -> float:
        """By how much the daemon's loop came too late of late, at worst."""
        return self._heartbeats.worst_lag_s

    @property
    def disk_trouble(self) -> str:
        """Why this node can't write; empty where it can."""
        return self._heartbeats.trouble or self._replica.trouble

    @property
    def is_removed(self) -> bool:
        """Say whether this node was a member of its cluster and isn't any more."""
        state = self._replica.state
        return self.own not in state.members and state.roster.known(self.own) is not None

    def alive(self) -> frozenset[NodeId]:
        """Return the members that answer, this node included."""
        return self._heartbeats.alive()

    def liveness(self, node: NodeId) -> Liveness:
        """Return whether a member answers; this node does, to itself."""
        is_self = node == self.own
        return Liveness.ALIVE if is_self else self._heartbeats.membership.liveness(node)

    def last_heard_s(self, node: NodeId) -> float | None:
        """Return how long ago a member was heard; None where it never was."""
        return 0.0 if node == self.own else self._heartbeats.membership.last_heard_s(node, now_s())

    def hardware_of(self, node: NodeId) -> Hardware | None:
        """Return a member's hardware, as it reports it."""
        if node == self.own:
            return self.hardware
        peer = self._peers.get(node)
        return None if peer is None else peer.hardware

    def addresses(self) -> list[str]:
        """Return where our Peer service answers."""
        hosts = local_addresses(
            loopback_only=self._settings.local, interfaces=self._settings.interface
        )
        return [str(Address(host, self.port)) for host in hosts]

    def leader_addresses(self) -> list[str]:
        """Return where the leader's Peer service answers, as far as we know."""
        peer = self._leading_peer()
        return [] if peer is None else [without_scope_in(str(peer.address)), *peer.addresses]

    def live_progress(self, cycle: str) -> dict[str, Any] | None:
        """Return the leader's telemetry of a cycle's running phase."""
        return next((live for live in self.running() if live["cycle"] == cycle), None)

    def running(self) -> list[dict[str, Any]]:
        """Return the leader's telemetry of every running phase."""
        term = self._own_term()
        if term is not None:
            return term.board.to_plain(now_s())
        peer = self._leading_peer()
        return [] if peer is None else peer.telemetry.get("live", [])

    def phases_before(self) -> dict[PhaseKey, float]:
        """Return when each phase began that other leaders reported, who may be gone by now."""
        return {
            (CycleId(live["cycle"]), live["round"], Phase(live["phase"])): (
                peer.heard_s - live["elapsed_s"]
            )
            for peer in sorted(self._peers, key=attrgetter("heard_s"))
            for live in peer.telemetry.get("live", [])
        }

    def waiting(self) -> list[PendingJoin]:
        """Return the pending joins: the leader's own list, or what its heartbeats report of it."""
        members, term = self._replica.state.members, self._own_term()
        if term is not None:
            seen = term.admissions.waiting.shown(now_s())
        else:
            peer = self._leading_peer()
            seen = [] if peer is None else from_telemetry(peer.telemetry)
        return [waiting for waiting in seen if waiting.node not in members]

    def admission_terms(self) -> Mapping[str, Any]:
        """Return the leader's report of pairing window and tokens; empty: no leader is heard."""
        term = self._own_term()
        if term is not None:
            return self.own_admission_terms(term)
        peer = self._leading_peer()
        terms = None if peer is None else peer.telemetry.get("door")
        return terms if isinstance(terms, dict) else {}

    def own_admission_terms(self, term: OwnTerm) -> dict[str, Any]:
        """Return the same in a term of our own."""
        return _admission_terms(
            self._replica.state,
            term.admissions.window,
            term.admissions.token_timer,
            now_s(),
            trusts_lan=self._settings.trust_lan,
        )

    def load_of(self, node: NodeId) -> Load:
        """Return how busy a member is, as far as that is known."""
        if node == self.own:
            return self.load_watch.load()
        peer = self._peers.get(node)
        return {} if peer is None else peer.telemetry.get("load", {})

    def gpu_loads_of(self, node: NodeId) -> tuple[GpuLoad, ...]:
        """Return how busy a member's accelerators are, one reading for each that it has."""
        if node == self.own:
            return self.load_watch.gpu_loads()
        peer, hardware = self._peers.get(node), self.hardware_of(node)
        loads = read_rows(peer.telemetry.get("gpus")) if peer is not None else ()
        return aligned(loads, len(hardware.gpus) if hardware is not None else 0)

    def outage(self) -> Outage | None:
        """Return what is wrong with this machine's own link, where nobody is reached for that."""
        others = [member for member in self._replica.state.members if member != self.own]
        links = {peer.node: peer.links for peer in self._peers}
        return own_outage({member: self.liveness(member) for member in others}, links)

    def _leading_peer(self) -> Peer | None:
        leader = self.leader
        return None if leader is None else self._peers.get(leader)


def _admission_terms(
    state: State, window: PairingWindow, timer: TokenTimer, at_s: float, *, trusts_lan: bool
) -> dict[str, Any]:
    """Return what a leader's heartbeats say of admission; times left are by the leader's clock.

    `trusts_lan`: whether everybody on the network is admitted; `closes_in_s`: seconds until the
    pairing window closes, None where it doesn't by itself; `tokens`: seconds left by token.
    """
    closes = closes_by_itself(state)
    tokens = islice(sorted(state.tokens), MAX_TIMED_TOKENS)
    return {
        "trusts_lan": trusts_lan,
        "closes_in_s": window.left_s(at_s, state.window_edit) if closes else None,
        "tokens": {short(token): round(timer.left_s(at_s, token)) for token in tokens},
    }
