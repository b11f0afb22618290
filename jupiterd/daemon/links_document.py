"""The document of the links between members: the picture of the cluster.

Owns its keys. Measures nothing: it tells what members have measured and told each other.
"""

from itertools import combinations
from typing import TYPE_CHECKING, Any

from jupiterd.daemon.gang_order import known_qualities

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

SCHEMA = "jupiter/v1"


def links_document(node: "Node") -> dict[str, Any]:
    """Return a row for each pair of members that are alive; null is what nobody knows."""
    here = sorted(node.alive())
    known = known_qualities(node.peers, node.identity.node_id, here)
    rows: list[dict[str, Any]] = []
    for one, other in combinations(here, 2):
        quality = known[one, other]
        rows.append(
            {
                "nodes": [one, other],
                "kind": None if quality is None else quality.kind.name.lower(),
                "rtt_s": None if quality is None else quality.rtt_s,
                "bits_per_s": None if quality is None else quality.bits_per_s,
            }
        )
    return {"schema": SCHEMA, "links": rows}
