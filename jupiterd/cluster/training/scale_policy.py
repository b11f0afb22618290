"""When a node that could train, and isn't in the gang, is taken in.

Owns that decision, and who is left out until it has been shown that the others can meet it. Doesn't
know how a gang is launched, or the clock: the time is handed in. Taking a node in ends an attempt
after its running step, so it isn't done for whoever has only just come, nor again and again for one
that keeps leaving.

Losing a node costs the others up to five seconds, taking it in about one. With a minute between a
flaky machine's visits that is a tenth of their time at worst, and one that is well again stands
idle for no longer; half a minute of training makes up for having been lost once.
"""

from collections.abc import Set as AbstractSet

from jupiterd.ids import NodeId

SETTLE_S = 5.0
"""How long a node must have been fit to train: it also warms up meanwhile."""

MAX_SETTLE_S = 60.0
"""Each time that a node is lost it must settle for twice as long, up to this."""

FORGIVES_S = 30.0
"""After so long in the gang it must settle for half as long."""

AGAIN_S = 10.0
"""One that couldn't be met is tried again after that."""

LEAST_ATTEMPT_S = 10.0
"""How long an attempt lasts before another node may end it."""


class ScalePolicy:
    """Who waits to train with one gang, through all its attempts."""

    def __init__(self) -> None:
        self._gang: frozenset[NodeId] = frozenset()
        self._began_s = 0.0
        self._fit_since_s: dict[NodeId, float] = {}
        self._arrived_s: dict[NodeId, float] = {}
        self._settle_s: dict[NodeId, float] = {}
        self._not_before_s: dict[NodeId, float] = {}

    @property
    def left_out(self) -> frozenset[NodeId]:
        """Return who isn't taken in, nor launched with, before `admit`: it couldn't be met."""
        return frozenset(self._not_before_s)

    def begin(self, gang: AbstractSet[NodeId], now_s: float) -> None:
        """Take in that an attempt begins with these members."""
        for node in self._gang - gang:
            self._note_lost(node, now_s)
        for node in gang - self._gang:
            self._arrived_s[node] = now_s
        self._gang = frozenset(gang)
        self._began_s = now_s
        self._fit_since_s.clear()

    def leave_out(self, node: NodeId, now_s: float) -> bool:
        """Take in that the others can't meet a node, or not well enough to train with it.

        Returns whether that is news: it wasn't left out already.
        """
        is_news = node not in self._not_before_s
        self._not_before_s[node] = now_s + AGAIN_S
        return is_news

    def admit(self, node: NodeId) -> None:
        """Take in that the others can meet a node again."""
        self._not_before_s.pop(node, None)

    def look(self, fit: AbstractSet[NodeId], now_s: float) -> frozenset[NodeId]:
        """Return who is to be taken in now, of those who could train; look about once a second.

        Whether the others can meet them is looked at then: see `leave_out` and `admit`.
        """
        waiting = fit - self._gang
        self._fit_since_s = {node: self._fit_since_s.get(node, now_s) for node in waiting}
        if now_s - self._began_s < LEAST_ATTEMPT_S:
            return frozenset()
        return frozenset(node for node in waiting if self._has_settled(node, now_s))

    def _has_settled(self, node: NodeId, now_s: float) -> bool:
        fit_s = now_s - self._fit_since_s[node]
        is_early = now_s < self._not_before_s.get(node, now_s)
        return not is_early and fit_s >= self._settle_s.get(node, SETTLE_S)

    def _note_lost(self, node: NodeId, now_s: float) -> None:
        trained_s = now_s - self._arrived_s.get(node, now_s)
        before_s = self._settle_s.get(node, SETTLE_S)
        after_s = 2 * before_s * 0.5 ** (trained_s / FORGIVES_S)
        self._settle_s[node] = min(max(after_s, SETTLE_S), MAX_SETTLE_S)
