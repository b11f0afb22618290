"""Trying links: from this node to others, and those between others by asking them to.

Owns the trial and its bounds. Doesn't know what a link must carry (`cluster.gang_links`), or when
one is tried.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import grpc.aio

from jupiterd.cluster.links.gang_links import HANDSHAKES, LinkTrial
from jupiterd.daemon.links.peers import Peers
from jupiterd.ids import NodeId
from jupiterd.net.handshakes import ANSWER_S, unanswered
from jupiterd.rpc import peer_pb2

MAX_LINKS: Final = 32
"""In one trial: each takes some sockets for a moment."""

MOST_AT_ONCE: Final = 96
LEAST_HANDSHAKES: Final = 6
"""All members try at the same time, and macOS lets 128 wait at a port."""

REPORT_S: Final = ANSWER_S + 0.6
"""How long others are waited for: what a bad link keeps back, its other end has seen too."""


async def try_links(peers: Peers, own: NodeId, nodes: Iterable[NodeId]) -> list[LinkTrial]:
    """Try the links from here to these nodes, as far as there are any."""
    found = [peer for node in nodes if node != own and (peer := peers.get(node)) is not None]
    tried = found[:MAX_LINKS]
    each = max(LEAST_HANDSHAKES, min(HANDSHAKES, MOST_AT_ONCE // max(1, len(tried))))
    lost = await unanswered([peer.address for peer in tried], each)
    return [LinkTrial(own, peer.node, each, count) for peer, count in zip(tried, lost, strict=True)]


async def try_all_links(peers: Peers, own: NodeId, nodes: Collection[NodeId]) -> list[LinkTrial]:
    """Try the links between all of these nodes; who can't say in time how it went is left out."""
    trials = await asyncio.gather(
        *(
            try_links(peers, own, nodes) if node == own else _tried_by(peers, node, nodes)
            for node in nodes
        )
    )
    return [trial for of_one in trials for trial in of_one]


def to_reply(trials: Iterable[LinkTrial]) -> peer_pb2.TryLinksReply:
    """Return this node's trials as a message for another member."""
    links = [
        peer_pb2.TriedLink(
            node=trial.other, handshakes=trial.handshakes, unanswered=trial.unanswered
        )
        for trial in trials
    ]
    return peer_pb2.TryLinksReply(links=links)


async def _tried_by(peers: Peers, node: NodeId, nodes: Iterable[NodeId]) -> Sequence[LinkTrial]:
    peer = peers.get(node)
    if peer is None:
        return ()
    request = peer_pb2.TryLinksRequest(nodes=[other for other in nodes if other != node])
    with contextlib.suppress(grpc.aio.AioRpcError), peer.channels.in_use() as channels:
        reply = await channels.control.TryLinks(request, timeout=REPORT_S)
        return [
            LinkTrial(node, NodeId(link.node), link.handshakes, link.unanswered)
            for link in reply.links[:MAX_LINKS]
        ]
    return ()
