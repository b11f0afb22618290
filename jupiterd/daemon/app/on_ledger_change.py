"""What new entries of the ledger call for on every node, whoever leads.

Owns the order in which its parts are notified. Doesn't know what entries say (`state` does).
"""

from typing import TYPE_CHECKING

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.cycles import term_duties
from jupiterd.daemon.gangs.warm_pool_policy import WarmPoolPolicy
from jupiterd.errors import RefusedError

if TYPE_CHECKING:
    from jupiterd.daemon.app.wiring import Parts


async def follow_ledger(node: "Parts") -> None:
    """Take up who is a member, and part with who isn't, after every change."""
    version = -1
    warm = WarmPoolPolicy(node.identity.node_id, node.hardware, node.settings)
    while True:
        version = await node.replica.changed_since(version)
        node.heartbeats.roster_changed()
        if node.is_removed:
            node.heartbeats.resign()
            await node.order_executor.end_all(
                RefusedError("this node was removed from the cluster")
            )
        else:  # a removal may turn out not to count
            node.heartbeats.reinstate()
        await _unlink_removed_members(node)
        await node.order_executor.end_closed(_closed_attempts(node))
        await node.worker_runner.old_parts.look()
        is_idle = is_idle_after(node.replica.state)
        kinds = warm.wanted_kinds(node.replica.state)
        node.worker_runner.warm_pool.want(kinds, ends_others_now=is_idle)
        if not is_idle:
            await term_duties.get_ready()


def is_idle_after(state: State) -> bool:
    """Say whether no attempt is to come, and none is being ended: its ranks keep their state."""
    return all(
        cycle.has_nothing_to_do and not cycle.open_attempts for cycle in state.cycles.values()
    )


def _closed_attempts(node: "Parts") -> set[tuple[str, int]]:
    cycles = node.replica.state.cycles.items()
    return {(id_[:8], attempt) for id_, cycle in cycles for attempt in cycle.attempts_closed}


async def _unlink_removed_members(node: "Parts") -> None:
    for peer in node.peers:
        if peer.node not in node.replica.state.members:
            await node.anti_entropy.send_roster(peer.channels.control)
            await node.peers.unlink(peer.node)
