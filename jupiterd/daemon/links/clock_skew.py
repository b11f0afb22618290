"""What this node knows of the clocks of the machines that it is linked with.

Owns which of them count: those that are alive, by the name that people know. Doesn't know how an
offset is found (`cluster.values.clock_offsets`).
"""

from typing import TYPE_CHECKING

from jupiterd.cluster.values.clock_offsets import clock_differences
from jupiterd.cluster.values.node_names import told_apart

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node


def clocks_apart(node: "Node") -> tuple[tuple[str, str], ...]:
    """Return whose clock differs from the others', and how that is said."""
    members, alive = node.journal.state.members, node.alive()
    names = told_apart({member: admitted.name for member, admitted in members.items()})
    offsets_s = {
        peer.node: offset_s
        for peer in node.peers
        if peer.node in alive
        and peer.node in names
        and (offset_s := peer.beats.clock.proved_s) is not None
    }
    own = node.identity.node_id
    return tuple(clock_differences(own, offsets_s, {own: node.settings.name, **names}))
