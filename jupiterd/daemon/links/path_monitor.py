"""Chooses the network path to each peer that can be reached by several.

Owns the measuring, and moving to another path. Doesn't know the rules (`cluster.links`), how paths
are found (`handshake`), or how bandwidth is measured. A peer's only path isn't measured.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable

import grpc

from jupiterd.cluster.links.links import DOUBT_S
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_address
from jupiterd.ids import NodeId, short
from jupiterd.net.connect_time import connect_time_s
from jupiterd.net.interfaces import seen_from_here
from jupiterd.net.scopes import without_scope
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

TICK_S = 0.25
CALM_TICK_S = 0.5
"""Interval while every path has worked within DOUBT_S."""
COMPARE_S = 1.0
"""How often the other paths are compared with the one in use while that works."""
ANNOUNCE_S = 50.0
"""The other end follows an announced path for two minutes (`links.CHOICE_LASTS_S`)."""
ANNOUNCE_AGAIN_S = 1.0
"""Where it can't follow yet: it hasn't met us there, or the call was lost."""
ANSWER_TIMEOUT_S = 0.8
ANNOUNCE_TIMEOUT_S = 2.0


class PathMonitor:
    """Keeps every link on the best of its paths."""

    def __init__(
        self,
        peers: Peers,
        port: Callable[[], int],
        proved_s: Callable[[Peer], float],
        group: asyncio.TaskGroup,
    ) -> None:
        """`proved_s` says when the link to a peer last worked."""
        self._peers = peers
        self._port = port
        self._proved_s = proved_s
        self._group = group
        self._announce_at_s: dict[NodeId, float] = {}
        self._wait_s: dict[NodeId, float] = {}
        """Pause before a peer that couldn't follow gets the path again; longer each time."""

    async def run(self) -> None:
        """Measure for ever the peers that can be reached by more than one path."""
        compare_at_s = now_s()
        while True:
            await asyncio.sleep(self._pause_s())
            compares = now_s() >= compare_at_s
            compare_at_s = now_s() + COMPARE_S - CALM_TICK_S / 2 if compares else compare_at_s
            for peer in self._peers:
                if len(peer.links) > 1 and (compares or self._is_in_doubt(peer)):
                    self._look_at(peer)

    def note_preferred(self, node: NodeId, text: str) -> bool:
        """Note at which address a peer wants to be reached; return whether we know that path.

        Raises:
            ValueError: the text is no address.
        """
        peer = self._peers.get(node)
        if peer is None:
            return False
        addresses = seen_from_here(sanitized_address(text))
        is_known = peer.links.note_choice(now_s(), map(str, addresses))
        self._look_at(peer)
        return is_known

    def note(self, node: NodeId, text: str, bits_per_s: float) -> None:
        """Note the bandwidth of a path that a peer measured; raises ValueError for nonsense."""
        if not 0.0 < bits_per_s < math.inf:
            raise ValueError("no bandwidth")
        peer = self._peers.get(node)
        if peer is not None:
            for address in seen_from_here(sanitized_address(text)):
                peer.links.measured(now_s(), str(address), bits_per_s)

    def _pause_s(self) -> float:
        """Return in how many seconds a path can be in doubt at the earliest, within bounds."""
        proved_s = (self._proved_s(peer) for peer in self._peers if len(peer.links) > 1)
        doubt_at_s = min(proved_s, default=math.inf) + DOUBT_S
        return min(CALM_TICK_S, max(TICK_S, doubt_at_s - now_s()))

    def _is_in_doubt(self, peer: Peer) -> bool:
        return peer.links.is_dead or now_s() - self._proved_s(peer) > DOUBT_S

    def _look_at(self, peer: Peer) -> None:
        peer.links.carried(self._proved_s(peer))
        for target in peer.links.due(now_s()):
            self._group.create_task(self._measure(peer, target), name=f"measure {target}")
        if peer.links.choose(now_s()):
            self._move(peer)
        if peer.links.decides and now_s() >= self._announce_at_s.get(peer.node, 0.0):
            self._announce_at_s[peer.node] = now_s() + ANNOUNCE_S
            self._group.create_task(self._announce(peer), name=f"tell path {short(peer.node)}")

    async def _measure(self, peer: Peer, target: str) -> None:
        address = parse_address(target)
        took_s = await connect_time_s(address, ANSWER_TIMEOUT_S)
        if took_s is None:
            peer.links.missed(now_s(), target)
        else:
            self._peers.learn(peer, address)
            peer.links.answered(now_s(), target, took_s)

    def _move(self, peer: Peer) -> None:
        before, address = peer.address, parse_address(peer.links.active)
        log.info(
            "path_changed",
            extra={
                "node": short(peer.node),
                "before": str(before),
                "after": str(address),
                "reason": peer.links.reason,
            },
        )
        old = self._peers.move(peer, address)
        self._group.create_task(old.retire(), name=f"retire {before}")
        self._announce_at_s.pop(peer.node, None)

    async def _announce(self, peer: Peer) -> None:
        """Send the path in use to the other end; a peer that isn't reached decides by itself."""
        if not peer.source:
            return
        where = Address(without_scope(peer.source), self._port())
        request = peer_pb2.UsePathRequest(address=str(where))
        is_known = False
        with contextlib.suppress(grpc.aio.AioRpcError):
            reply = await peer.channels.heartbeat.UsePath(request, timeout=ANNOUNCE_TIMEOUT_S)
            is_known = reply.known
        if is_known:
            self._wait_s.pop(peer.node, None)
            return
        wait_s = self._wait_s.get(peer.node, ANNOUNCE_AGAIN_S)
        self._announce_at_s[peer.node] = now_s() + wait_s
        self._wait_s[peer.node] = min(2 * wait_s, ANNOUNCE_S)
