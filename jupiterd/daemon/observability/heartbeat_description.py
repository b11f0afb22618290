"""What heartbeats say of this node: its load, its alerts, its term as a leader, where it answers.

Owns its contents, and keeping them within their bounds. Doesn't know when a heartbeat is sent.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgpack

from jupiterd.cluster.links.unreached import UNREACHED, unreached_rows
from jupiterd.cluster.membership.pending_joins import to_plain
from jupiterd.daemon.links.heartbeat_stream import Description
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.unreachable_peers import UnreachablePeers
from jupiterd.daemon.observability.telemetry_limits import short_telemetry
from jupiterd.daemon.planning.rank_order import ToldQualities, told_qualities
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import interface_of, recent_addresses
from jupiterd.net.scopes import host_in, without_scope_in
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

LOOK_AT_ADDRESSES_S: Final = 2.0
"""Asking the system for them takes a millisecond; a change may wait this long to be sent."""


class HeartbeatDescription:
    """One node's description of itself."""

    def __init__(
        self,
        view: LocalView,
        peers: Peers,
        unreached: UnreachablePeers,
        more_telemetry: Callable[[], Mapping[str, Any]],
    ) -> None:
        """`more_telemetry`: of alerts, and of models that are served."""
        self._view, self._peers = view, peers
        self._unreached, self._more_telemetry = unreached, more_telemetry
        self._last_about = peer_pb2.About()
        self._about_due_s = 0.0
        self._about_of: object = None
        """The port, the addresses and the links that it was made from."""
        self._left_out: frozenset[str] = frozenset()
        """What telemetry was ever too large for."""

    def describe(self) -> Description:
        """Return what a heartbeat says of us; the pulse adds terms and ages."""
        view = self._view
        telemetry: dict[str, Any] = {"load": view.load_watch.load(), **self._more_telemetry()}
        if gpus := view.load_watch.gpu_loads():
            telemetry["gpus"] = [load.to_row() for load in gpus]
        if unreached := unreached_rows(self._unreached.found):
            telemetry[UNREACHED] = unreached
        runs_gang = False
        term = view.own_term
        if term is not None:
            if waiting := term.admissions.waiting.shown(now_s()):
                telemetry["waiting"] = to_plain(waiting)
            telemetry["live"] = term.board.to_plain(now_s())
            telemetry["door"] = view.own_admission_terms(term)
            runs_gang = any(live["gang"] for live in telemetry["live"])
        return Description(self._about(), self._packed(telemetry), runs_gang)

    def _packed(self, telemetry: dict[str, Any]) -> bytes:
        """Return telemetry as it is sent; what had to be left out is said once."""
        short = short_telemetry(telemetry)
        if news := frozenset(short.left_out) - self._left_out:
            self._left_out |= news
            log.warning("telemetry_shortened", extra={"left_out": ", ".join(short.left_out)})
        return short.raw

    def _about(self) -> peer_pb2.About:
        """Return what seldom changes: the same object as before, unless it has."""
        if now_s() >= self._about_due_s:
            self._about_due_s = now_s() + LOOK_AT_ADDRESSES_S
            links = told_qualities(self._peers)
            about_of = self._view.port, recent_addresses(), links
            if about_of != self._about_of:
                self._about_of, self._last_about = about_of, self._new_about(links)
        return self._last_about

    def _new_about(self, links: ToldQualities) -> peer_pb2.About:
        addresses = self._view.addresses()
        return peer_pb2.About(
            run_nonce=self._view.run_nonce,
            name=self._view.name,
            addresses=map(without_scope_in, addresses),
            address_kinds=[kind_of(interface_of(host_in(text))) for text in addresses],
            hardware=msgpack.packb(self._view.hardware.to_plain()),
            links=msgpack.packb(links),
        )
