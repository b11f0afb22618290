"""One real node among hundreds: whether liveness and leadership hold at any size.

Owns the crowd. Real: `Presence` of one node, with everything in it. Imitated: the others, which
beat twice a second over a lossy network, hear each other, and follow whoever leads. A cluster has
64 members at most; this says what liveness alone would do beyond that.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from random import Random

from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.membership.presence import (
    Beat,
    BecomeLeader,
    Changed,
    Effect,
    Input,
    Presence,
    PreVoteAnswered,
    RequestPreVote,
    RosterChanged,
    Ticked,
)
from jupiterd.ids import NodeId
from tests.simulation.profiles import QUICK

TIMING = QUICK
DELAY_S = 0.05
TERM = 7


@dataclass
class Other:
    """One of the crowd."""

    node: NodeId
    is_dead: bool = False
    is_cut_off: bool = False
    """We don't hear it, and the rest of the crowd does."""
    beat_at: float = 0.0


class Crowd:
    """A real node and the others, in virtual time."""

    def __init__(self, seed: int, size: int, loss: float) -> None:
        self._rng = Random(seed)
        self._loss = loss
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._told: tuple[float, Mapping[NodeId, float]] = (-1.0, {})
        self.now = 0.0
        self.node = NodeId(f"{size:032x}")
        self.others = {node: Other(node) for node in map(_node, range(size - 1))}
        self.leader: NodeId = _node(0)
        self.changes: list[Changed] = []
        self.led_at: float | None = None
        self.presence = Presence(self.node, TERM, 0.0, self._rng, TIMING)
        self._tell(RosterChanged(frozenset(self.others)))
        for other in self.others.values():
            self._at(self._rng.uniform(0.0, TIMING.beat_s), lambda other=other: self._beat(other))
        self._at(TIMING.beat_s, self._tick)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until, queue = self.now + seconds, self._queue
        while queue[0][0] <= until:
            self.now, _, action = heapq.heappop(queue)
            action()
        self.now = until

    def thought(self, liveness: Liveness) -> set[NodeId]:
        """Return whom the real node thinks alive, suspect or gone."""
        membership = self.presence.membership
        return {node for node in self.others if membership.liveness(node) is liveness}

    def choose(self, share: float) -> list[Other]:
        """Return so many of those that live, at random, the leader not among them."""
        living = [o for o in self.others.values() if not o.is_dead and o.node != self.leader]
        return self._rng.sample(living, int(len(self.others) * share))

    def _at(self, delay_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay_s, next(self._numbers), action))

    def _tick(self) -> None:
        self._tell(Ticked())
        self._at(TIMING.beat_s, self._tick)

    def _beat(self, other: Other) -> None:
        if other.is_dead:
            return
        other.beat_at = self.now
        self._at(TIMING.beat_s, lambda: self._beat(other))
        if not other.is_cut_off and self._rng.random() >= self._loss:
            beat = Beat(other.node, TERM, self.leader, ages_s=self._ages())
            self._at(self._rng.random() * DELAY_S, lambda: self._tell(beat))

    def _ages(self) -> Mapping[NodeId, float]:
        """Return what the crowd says of itself: the same for all of it within one beat's time."""
        if self.now - self._told[0] >= TIMING.beat_s:
            ages = {other.node: self.now - other.beat_at for other in self.others.values()}
            self._told = self.now, ages
        return self._told[1]

    def _tell(self, event: Input) -> None:
        for effect in self.presence.step(self.now, event):
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Changed():
                self.changes.append(effect)
            case RequestPreVote(nodes, term):
                for node in sorted(nodes):
                    self._ask(self.others[node], term)
            case BecomeLeader():
                self.leader, self.led_at = self.node, self.now
            case _:
                pass

    def _ask(self, other: Other, term: int) -> None:
        """Everybody grants who hears no leader; either way a message may get lost."""
        is_heard = not (other.is_dead or other.is_cut_off)
        if is_heard and self._rng.random() >= self._loss and self._rng.random() >= self._loss:
            leads = self.leader == self.node or not self.others[self.leader].is_dead
            answer = PreVoteAnswered(other.node, granted=not leads, term=term)
            self._at(self._rng.random() * DELAY_S, lambda: self._tell(answer))


def _node(number: int) -> NodeId:
    return NodeId(f"{number:032x}")
