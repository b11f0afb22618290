"""The document of the links between members: the picture of the cluster.

Owns its keys. Measures nothing: it tells what members have measured and told each other.
"""

from itertools import combinations
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.values.interface_kind import LOOPBACK, is_loopback
from jupiterd.daemon.planning.rank_order import known_qualities
from jupiterd.document_schema import SCHEMA
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node


def links_document(node: "Node") -> dict[str, Any]:
    """Return a row for each pair of members that are alive; null is what nobody knows."""
    here = sorted(node.alive())
    known = known_qualities(node.peers, node.identity.node_id, here)
    rows: list[dict[str, Any]] = []
    for one, other in combinations(here, 2):
        quality = known[one, other]
        is_inside = _is_on_loopback(node, one) and _is_on_loopback(node, other)
        kind = None if quality is None else quality.kind.name.lower()
        rows.append(
            {
                "nodes": [one, other],
                "kind": LOOPBACK if is_inside else kind,
                "rtt_s": None if quality is None else quality.rtt_s,
                "bits_per_s": None if quality is None else quality.bits_per_s,
            }
        )
    return {"schema": SCHEMA, "links": rows}


def _is_on_loopback(node: "Node", member: NodeId) -> bool:
    if member == node.identity.node_id:
        told = node.outlook.addresses()
    else:
        peer = node.peers.get(member)
        told = [] if peer is None else peer.shown_addresses()
    return bool(told) and all(is_loopback(address) for address in told)
