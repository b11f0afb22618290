"""What new entries of the ledger call for on every node, whoever leads.

Owns the order in which its parts are told. Doesn't know what entries say (`state` does).
"""

from typing import TYPE_CHECKING

from jupiterd.daemon.cycles import term_duties
from jupiterd.daemon.gangs.warm_pool_policy import wanted_kinds
from jupiterd.errors import RefusedError

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node


async def follow_ledger(node: "Node") -> None:
    """Take up who is a member, and part with who isn't, after every change."""
    version = -1
    while True:
        version = await node.journal.changed_since(version)
        node.pulse.roster_changed()
        if node.is_removed:
            node.pulse.resign()
            await node.holder.end_all(RefusedError("this node was removed from the cluster"))
        else:  # a removal may turn out not to count
            node.pulse.reinstate()
        await _part_with_strangers(node)
        await node.holder.end_closed(_closed_epochs(node))
        is_idle = _is_idle(node)
        node.runner.spares.want(wanted_kinds(node), ends_others_now=is_idle)
        if not is_idle:
            await term_duties.get_ready()


def _is_idle(node: "Node") -> bool:
    """Say whether no epoch is to come, and none is being ended: its ranks keep their state."""
    cycles = node.journal.state.cycles.values()
    return all(cycle.finished and not cycle.open_epochs for cycle in cycles)


def _closed_epochs(node: "Node") -> set[tuple[str, int]]:
    cycles = node.journal.state.cycles.items()
    return {(id_[:8], epoch) for id_, cycle in cycles for epoch in cycle.epochs_closed}


async def _part_with_strangers(node: "Node") -> None:
    for peer in node.peers:
        if peer.node not in node.journal.state.members:
            await node.exchange.tell(peer.channels.control)
            await node.peers.unlink(peer.node)
