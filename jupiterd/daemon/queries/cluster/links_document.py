"""The document of the links between members: the picture of the cluster.

Owns its keys. Measures nothing: it shows what members have measured and reported.
"""

from itertools import combinations
from typing import Any

from jupiterd.cluster.values.interface_kind import LOOPBACK, is_loopback
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.planning.rank_order import known_qualities
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.document_schema import SCHEMA
from jupiterd.ids import NodeId


def links_document(view: LocalView, peers: Peers) -> dict[str, Any]:
    """Return a row for each pair of members that are alive; null is what nobody knows."""
    here = sorted(view.alive())
    known = known_qualities(peers, view.own, here)
    rows: list[dict[str, Any]] = []
    for one, other in combinations(here, 2):
        quality = known[one, other]
        is_inside = _is_on_loopback(view, peers, one) and _is_on_loopback(view, peers, other)
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


def _is_on_loopback(view: LocalView, peers: Peers, member: NodeId) -> bool:
    if member == view.own:
        addresses = view.addresses()
    else:
        peer = peers.get(member)
        addresses = [] if peer is None else peer.shown_addresses()
    return bool(addresses) and all(is_loopback(address) for address in addresses)
