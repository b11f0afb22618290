"""Which members of a gang begin without the state that it goes on from, and fetch it as it trains.

Owns asking who has it, and the order of the ranks: rank 0 must have it. Doesn't know what a rank
does until it has caught up (workers), or how the state is fetched (`deferred_inputs`).
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.ids import ArtifactId, NodeId, short

log = logging.getLogger(__name__)


class LateJoiners:
    """The members of one leader's gangs that join without the checkpoint.

    A node that was too slow once must fetch the checkpoint before the others train.
    """

    def __init__(self, term: Term, reach: ArtifactReach) -> None:
        self._term, self._reach = term, reach
        self._slow: set[NodeId] = set()

    def were_too_slow(self, nodes: Iterable[NodeId]) -> None:
        """Record that a gang stood still until these nodes had the checkpoint."""
        self._slow.update(nodes)

    async def named(self, gang_plan: GangPlan) -> GangPlan:
        """Return the launch with those named that lack its state, and one first that has it.

        Where nobody of the gang has it, or the round only begins, all get it before they start.
        """
        if not gang_plan.from_step or len(gang_plan.nodes) == 1:
            return gang_plan
        state = ArtifactId(gang_plan.from_checkpoint)
        has = await asyncio.gather(
            *(_has(self._term, self._reach, node, state) for node in gang_plan.nodes)
        )
        lack = {node for node, holds in zip(gang_plan.nodes, has, strict=True) if holds is False}
        late = frozenset(lack - self._slow)
        if not late or True not in has:
            return gang_plan
        first = gang_plan.nodes[has.index(True)]
        log.info(
            "ranks_late", extra={"attempt": gang_plan.attempt, "nodes": ",".join(map(short, late))}
        )
        return replace(turned(gang_plan, first), late=late)


async def _has(term: Term, reach: ArtifactReach, node: NodeId, state: ArtifactId) -> bool | None:
    if node == term.self_id:
        return reach.artifact_cache.store.holds(state)
    return await reach.artifact_cache.is_held_by(node, state)


def turned(gang_plan: GangPlan, first: NodeId) -> GangPlan:
    """Return the launch with a node's first rank as rank 0; a ring keeps its neighbours."""
    at = gang_plan.gang.index(first)
    gang = (*gang_plan.gang[at:], *gang_plan.gang[:at])
    sizes = (*gang_plan.micro_batches[at:], *gang_plan.micro_batches[:at])
    return replace(gang_plan, choice=replace(gang_plan.choice, gang=gang), micro_batches=sizes)
