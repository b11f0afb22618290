"""The order of a gang's ranks, by what the members know of their links.

Owns bringing their figures together: each tells of its own links when they change, so the leader
knows those between others too. Doesn't know how an order is found (`cluster.ring_order`).
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from jupiterd.cluster.links.ring_order import in_ring_order
from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import MAX_QUALITIES, LinkQuality, read_qualities
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.links.peers import Peers
from jupiterd.ids import NodeId, short

log = logging.getLogger(__name__)

ToldQualities: TypeAlias = "dict[str, list[float | None]]"

UNKNOWN: Final = LinkQuality(InterfaceKind.ETHERNET)
"""What a link is taken for that nobody tells of."""


def told_qualities(peers: Peers) -> ToldQualities:
    """Return what others are told of our links."""
    known = {
        short(peer.node): quality.to_plain()
        for peer in peers
        if (quality := peer.links.quality) is not None
    }
    return dict(list(known.items())[:MAX_QUALITIES])


def by_links(connectivity: Connectivity, choice: EngineChoice) -> EngineChoice:
    """Return the choice with its ranks in the order of the best links; the reason says so."""
    costs = _costs_s(connectivity, choice.gang)
    order = in_ring_order(choice.gang, lambda one, other: costs[one, other])
    reason = "; ".join(filter(None, [choice.reason, order.reason]))
    return replace(choice, gang=order.gang, reason=reason)


def _costs_s(
    connectivity: Connectivity, gang: tuple[NodeId, ...]
) -> dict[tuple[NodeId, NodeId], float]:
    """Return what each link costs."""
    return {ends: quality.cost_s for ends, quality in qualities(connectivity, gang).items()}


def qualities(
    connectivity: Connectivity, nodes: Iterable[NodeId]
) -> dict[tuple[NodeId, NodeId], LinkQuality]:
    """Return every link both ways round, in the eyes of that end which thinks worse of it."""
    known = known_qualities(connectivity.peers, connectivity.self_id, nodes)
    return {ends: quality or UNKNOWN for ends, quality in known.items()}


def known_qualities(
    peers: Peers, self_id: NodeId, nodes: Iterable[NodeId]
) -> dict[tuple[NodeId, NodeId], LinkQuality | None]:
    """Return the same as far as any end has told of it; None where neither has."""
    views = {node: _view_of(peers, self_id, node) for node in nodes}

    def worse(one: NodeId, other: NodeId) -> LinkQuality | None:
        known = [views[one].get(short(other)), views[other].get(short(one))]
        seen = [quality for quality in known if quality is not None]
        return max(seen, key=lambda quality: quality.cost_s, default=None)

    return {(one, other): worse(one, other) for one in views for other in views if one != other}


def _view_of(peers: Peers, self_id: NodeId, node: NodeId) -> Mapping[str, LinkQuality]:
    if node == self_id:
        return read_qualities(told_qualities(peers))
    peer = peers.get(node)
    return {} if peer is None else peer.reported_links
