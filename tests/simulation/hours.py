"""How often members are taken for gone that aren't: clusters on lossy links, hour after hour.

    python -m tests.simulation.hours NODE_HOURS [LOSS_PERCENT ...]

Owns the counting. Real: `FailureDetector` with its timing. Imitated: the beats of
`daemon.heartbeat_loop`: of each pair the node with the smaller id calls, twice a second, never two
calls at once, each for 2 s at most; the reply carries the other's state. Who wasn't called for a
second calls too, over another connection. Nobody ever dies here, so every verdict is false.
"""

import heapq
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count, product
from random import Random

from jupiterd.cluster.membership.failure_detector import (
    FailureDetector,
    Heard,
    Liveness,
    RosterChanged,
    Ticked,
)
from jupiterd.cluster.values.timing import LAN, Timing
from jupiterd.ids import NodeId
from tests.simulation.trouble.lossy_links import Datagrams, Link, Stream

CALL_TIMEOUT_S = 2.0
NOT_CALLED_S = 1.0
HOUR_S = 3600.0
SIZES = (2, 3, 5, 8)
"""Node-hours are shared out among clusters of so many; the smallest have the fewest witnesses."""
LOSSES = (0.05, 0.2, 0.3)
PART_NODE_HOURS = 25.0
"""Of one cluster's life; several are lived at once, each on a core."""

LINKS: Mapping[str, Callable[[Random, float], Link]] = {"datagrams": Datagrams, "streams": Stream}


@dataclass
class Count:
    """What came of some node-hours."""

    node_hours: float = 0.0
    verdicts: Counter[Liveness] = field(default_factory=Counter[Liveness])

    def __add__(self, other: "Count") -> "Count":
        return Count(self.node_hours + other.node_hours, self.verdicts + other.verdicts)

    def __str__(self) -> str:
        gone, suspect = self.verdicts[Liveness.GONE], self.verdicts[Liveness.SUSPECT]
        return f"{self.node_hours:7.1f} node-hours: {gone} gone, {suspect} suspect"


class Node:
    """One member: what it thinks of the others, and its calls under way."""

    def __init__(self, node: NodeId, timing: Timing) -> None:
        self.node = node
        self.membership = FailureDetector(node, 0.0, timing)
        self.peers: dict[NodeId, Peer] = {}


@dataclass
class Peer:
    """What a node knows of its connection to another one."""

    other: Node
    link: Link
    is_caller: bool
    """Ours is the smaller id."""
    busy_until: float = 0.0
    called_at: float = 0.0
    """When it last called us."""


class Hours:
    """One cluster without any trouble but lost packets."""

    def __init__(
        self,
        seed: int,
        size: int,
        loss: float,
        make: Callable[[Random, float], Link],
        timing: Timing = LAN,
    ) -> None:
        self._rng = Random(seed)
        self._now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.count = Count()
        self.nodes = [Node(NodeId(f"{number:032x}"), timing) for number in range(size)]
        for node in self.nodes:
            others = [other for other in self.nodes if other is not node]
            node.membership.step(0.0, RosterChanged(frozenset(other.node for other in others)))
            node.peers = {
                other.node: Peer(other, make(self._rng, loss), node.node < other.node)
                for other in others
            }
            self._at(self._rng.uniform(0.0, LAN.beat_s), lambda node=node: self._tick(node))

    def run(self, hours: float) -> Count:
        """Let the cluster live, and return what it thought of its members."""
        until, queue = hours * HOUR_S, self._queue
        while queue[0][0] <= until:
            self._now, _, action = heapq.heappop(queue)
            action()
        self.count.node_hours = hours * len(self.nodes)
        return self.count

    def _at(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at, next(self._numbers), action))

    def _tick(self, node: Node) -> None:
        now = self._now
        for change in node.membership.step(now, Ticked()):
            if change.before is not Liveness.GONE and change.after is not Liveness.ALIVE:
                self.count.verdicts[change.after] += 1
        for peer in node.peers.values():
            is_due = peer.is_caller or now - peer.called_at > NOT_CALLED_S
            if is_due and now >= peer.busy_until:
                self._call(node, peer)
        self._at(now + LAN.beat_s, lambda: self._tick(node))

    def _call(self, caller: Node, peer: Peer) -> None:
        """Call another node; what each says of the others is as old as the message."""
        now, gives_up_at = self._now, self._now + CALL_TIMEOUT_S
        carried = peer.link.carry(now)
        peer.busy_until = min(carried.over_at, gives_up_at)
        if carried.request_at <= gives_up_at:
            ages = caller.membership.ages(now)
            self._then(
                carried.request_at,
                lambda: self._answer(caller, peer.other, ages, carried.reply_at, gives_up_at),
            )

    def _answer(
        self,
        caller: Node,
        callee: Node,
        ages: Mapping[NodeId, float],
        reply_at: float,
        gives_up_at: float,
    ) -> None:
        callee.peers[caller.node].called_at = self._now
        callee.membership.step(self._now, Heard(caller.node, ages))
        if reply_at <= gives_up_at:
            said = Heard(callee.node, callee.membership.ages(self._now))
            self._then(reply_at, lambda: _drop(caller.membership.step(self._now, said)))

    def _then(self, at: float, action: Callable[[], None]) -> None:
        if at <= self._now:
            action()
        else:
            self._at(at, action)


def _drop(_changes: object) -> None:
    """Good news isn't counted."""


def count_verdicts(
    seed: int, node_hours: float, loss: float, make: Callable[[Random, float], Link]
) -> Mapping[int, Count]:
    """Return what clusters of each size thought, in so many node-hours together."""
    share = node_hours / len(SIZES)
    return {size: _live(seed, size, share, loss, make) for size in SIZES}


def _live(
    seed: int, size: int, node_hours: float, loss: float, make: Callable[[Random, float], Link]
) -> Count:
    return Hours(seed * len(SIZES) + size, size, loss, make).run(node_hours / size)


def main(arguments: list[str]) -> int:
    """Count, and show what was found; the exit status is 1 where anybody was taken for gone."""
    share = float(arguments[0]) / len(SIZES)
    losses = [float(percent) / 100 for percent in arguments[1:]] or LOSSES
    parts = math.ceil(share / PART_NODE_HOURS)
    gone = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for loss, name, size in product(losses, LINKS, SIZES):
            lives = [(seed, size, share / parts, loss, LINKS[name]) for seed in range(parts)]
            counted = sum(pool.map(_live, *zip(*lives, strict=True)), Count())
            print(f"{loss:4.0%} lost, {name:9}, {size} nodes: {counted}", flush=True)
            gone += counted.verdicts[Liveness.GONE]
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
