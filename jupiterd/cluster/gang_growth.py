"""When a node that could train, and isn't in the gang, is taken in.

Owns that decision. Doesn't know how a gang is launched, or the clock: the time is handed in. Taking
a node in ends an epoch after its running step, so it isn't done for whoever has only just come, nor
again and again for one that keeps leaving.
"""

from collections.abc import Set as AbstractSet

from jupiterd.ids import NodeId

SETTLE_S = 5.0
"""How long a node must have been fit to train: it also warms up meanwhile."""

MAX_SETTLE_S = 600.0

FICKLE_S = 120.0
"""A member that is lost so soon after it came must settle for twice as long the next time."""

LEAST_EPOCH_S = 10.0
"""How long an epoch lasts before another node may end it."""


class GangGrowth:
    """Who waits to train with one gang, through all its epochs."""

    def __init__(self) -> None:
        self._gang: frozenset[NodeId] = frozenset()
        self._began_s = 0.0
        self._fit_since_s: dict[NodeId, float] = {}
        self._came_s: dict[NodeId, float] = {}
        self._settle_s: dict[NodeId, float] = {}

    def begin(self, gang: AbstractSet[NodeId], now_s: float) -> None:
        """Take in that an epoch begins with these members."""
        for node in self._gang - gang:
            self._note_lost(node, now_s)
        for node in gang - self._gang:
            self._came_s[node] = now_s
        self._gang = frozenset(gang)
        self._began_s = now_s
        self._fit_since_s.clear()

    def look(self, fit: AbstractSet[NodeId], now_s: float) -> frozenset[NodeId]:
        """Return who is to be taken in now, of those who could train; look about once a second."""
        waiting = fit - self._gang
        self._fit_since_s = {node: self._fit_since_s.get(node, now_s) for node in waiting}
        if now_s - self._began_s < LEAST_EPOCH_S:
            return frozenset()
        settled = (
            node
            for node, since_s in self._fit_since_s.items()
            if now_s - since_s >= self._settle_s.get(node, SETTLE_S)
        )
        return frozenset(settled)

    def _note_lost(self, node: NodeId, now_s: float) -> None:
        is_fickle = now_s - self._came_s.get(node, now_s) < FICKLE_S
        before_s = self._settle_s.get(node, SETTLE_S)
        self._settle_s[node] = min(2 * before_s, MAX_SETTLE_S) if is_fickle else SETTLE_S
