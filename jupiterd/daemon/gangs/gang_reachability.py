"""Whether the members of one gang reach each other, and who is left out because they don't.

Owns the asking, and telling `scale_policy` whom that leaves out; people read it in the log. Doesn't
know who is to blame for a bad link (`cluster.gang_links`), or how a gang is ended and formed anew.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from jupiterd.cluster.links.gang_links import Link, hindering, left_out, lossy_links
from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.training.scale_policy import ScalePolicy
from jupiterd.daemon.gangs.rendezvous import Place, try_routes
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.links.reachability_probe import try_all_links
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId

log = logging.getLogger(__name__)

BAD_LINK = "its link loses packets, or carries none"


class GangReachability:
    """What one leader finds out about the links of its gang."""

    def __init__(
        self,
        machines: Machines,
        connectivity: Connectivity,
        scale_policy: ScalePolicy,
        name: Callable[[NodeId], str],
    ) -> None:
        self._machines, self._connectivity = machines, connectivity
        self.scale_policy = scale_policy
        self._name = name
        self._unsuited: dict[NodeId, tuple[str, ...]] = {}
        """Whose addresses didn't do, with those that it had then: trying again can't help."""

    async def prove_routes(
        self, connectivity: Connectivity, gang: Sequence[NodeId], *, reserve: bool
    ) -> dict[NodeId, Place]:
        """Return where each is reached; where not all can be, the next gang is formed without some.

        Raises:
            JupiterError: one can't reach another.
        """
        routes = await try_routes(connectivity, gang, reserve=reserve)
        bad = routes.bad
        self._note_unsuited(routes.unsuited)
        own = self._connectivity.self_id
        stay = () if own in gang else (own,)
        self._leave_out(left_out(bad, self._in_order([*stay, *gang]), stay), bad)
        for error in bad.values():
            raise error
        return dict(routes.places)

    async def hindering(self, gang_plan: GangPlan) -> list[NodeId]:
        """Return who is why nothing comes of a gang, by its links; it is left out from now on."""
        if len(gang_plan.nodes) == 1:
            return []
        own = self._connectivity.self_id
        trials = await try_all_links(self._connectivity.peers, own, self._in_order(gang_plan.nodes))
        answering = self._machines.answering()
        quiet = [node for node in gang_plan.nodes if node not in answering]
        gone = quiet or hindering(trials, self._in_order(gang_plan.nodes), own)
        self._leave_out(gone, {})
        return gone

    async def can_be_met(
        self, gang_plan: GangPlan, newcomers: Collection[NodeId]
    ) -> frozenset[NodeId]:
        """Return which newcomers a gang can meet, while it trains; the others are tried again."""
        tried = sorted(node for node in newcomers if not self._is_unsuited(node))
        if not tried:
            return frozenset()
        order = [*gang_plan.nodes, *tried]
        routes, trials = await asyncio.gather(
            try_routes(self._connectivity, order, reserve=gang_plan.choice.engine == MLX),
            try_all_links(self._connectivity.peers, self._connectivity.self_id, order),
        )
        self._note_unsuited(routes.unsuited.intersection(tried))
        stay = (self._connectivity.self_id, *gang_plan.nodes)
        gone = left_out(routes.bad.keys() | lossy_links(trials), [*stay, *tried], stay)
        self._leave_out(gone, routes.bad)
        met = frozenset(tried) - frozenset(gone)
        for node in met:
            self.scale_policy.admit(node)
        return met

    def _note_unsuited(self, nodes: Collection[NodeId]) -> None:
        self._unsuited |= {node: self._addresses(node) for node in nodes}

    def _is_unsuited(self, node: NodeId) -> bool:
        """Say whether a node still has just the addresses that didn't do."""
        return node in self._unsuited and self._unsuited[node] == self._addresses(node)

    def _addresses(self, node: NodeId) -> tuple[str, ...]:
        """Return where a node can be reached; none for ourselves, who are never a newcomer."""
        peer = self._connectivity.peers.get(node)
        return () if peer is None else (peer.shared_host, *sorted(peer.addresses))

    def _in_order(self, gang: Sequence[NodeId]) -> list[NodeId]:
        """Return the nodes of a gang, ourselves first: of two that are alike the other one goes."""
        own = self._connectivity.self_id
        return sorted(dict.fromkeys(gang), key=lambda node: node != own)

    def _leave_out(self, nodes: Sequence[NodeId], bad: Mapping[Link, JupiterError]) -> None:
        for node in nodes:
            self._machines.pass_over(node)
            if self.scale_policy.leave_out(node, now_s()):
                why = next((error.message for link, error in bad.items() if node in link), "")
                extra = {"node": self._name(node), "reason": why or BAD_LINK}
                log.warning("left_out_of_gang", extra=extra)
