"""What this node knows of the clocks of the machines that it is linked with.

Owns which of them count: those that are alive, by the name that people know. Doesn't know how an
offset is found (`cluster.values.clock_offsets`).
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from jupiterd.cluster.values.clock_offsets import clock_differences
from jupiterd.cluster.values.node_names import distinct_names
from jupiterd.daemon.links.peers import Peer
from jupiterd.ids import NodeId


def proved_offsets(peers: Iterable[Peer], alive: AbstractSet[NodeId]) -> dict[NodeId, float]:
    """Return by how many seconds each clock is ahead of ours, of peers of whom that is known."""
    found = ((peer.node, peer.beats.clock.proved_s) for peer in peers if peer.node in alive)
    return {node: offset_s for node, offset_s in found if offset_s is not None}


def clocks_apart(
    own: NodeId, own_name: str, names: Mapping[NodeId, str], offsets_s: Mapping[NodeId, float]
) -> tuple[tuple[str, str], ...]:
    """Return whose clock differs from the others', and how that is said.

    names: those of all members; who is no member isn't compared
    """
    shown = distinct_names(names)
    known = {node: offset_s for node, offset_s in offsets_s.items() if node in shown}
    return tuple(clock_differences(own, known, {own: own_name, **shown}))
