"""In which order the members of a gang stand, so that neighbours have the best links.

Owns that order. Pure. A ring is as fast as its slowest link, and each rank talks with its two
neighbours, so the worst link counts first and their sum second. The first member stays the first:
whoever hosts the store is chosen by other means. Up to EXACT_MEMBERS all orders are compared;
beyond, the nearest neighbour is taken again and again, and then crossings are undone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from jupiterd.ids import NodeId

EXACT_MEMBERS: Final = 8
LEAST_GAIN: Final = 0.9
"""The given order stays unless another one has a worst link that costs this part or less."""

Cost = Callable[[NodeId, NodeId], float]
"""Seconds that a piece takes from one to the other."""


@dataclass(frozen=True)
class RingOrder:
    """The order of a gang's ranks, and why it is that."""

    gang: tuple[NodeId, ...]
    reason: str


def in_ring_order(gang: Sequence[NodeId], cost_s: Cost) -> RingOrder:
    """Order a gang that names a node once for each of its ranks; those stay together."""
    given = list(dict.fromkeys(gang))
    found = best_order(given, cost_s)
    before_s, after_s = _worst_s(given, cost_s), _worst_s(found, cost_s)
    if len(given) < 4 or after_s > LEAST_GAIN * before_s:  # up to three are all neighbours anyway
        return RingOrder(tuple(n for n in given for _ in range(gang.count(n))), "")
    reason = f"ordered by links: a megabyte takes {_ms(after_s)} over the slowest of the ring"
    return RingOrder(
        tuple(node for node in found for _ in range(gang.count(node))),
        f"{reason}, {_ms(before_s)} in the order of ids",
    )


def best_order(nodes: Sequence[NodeId], cost_s: Cost) -> list[NodeId]:
    """Return the order with the best worst link; of equal ones that which is nearest the given."""
    first, others = list(nodes[:1]), list(nodes[1:])
    if len(nodes) > EXACT_MEMBERS:
        return _uncrossed(_by_nearest(nodes, cost_s), cost_s)
    orders = ([*first, *order] for order in permutations(others))
    return min(orders, key=lambda order: _badness(order, cost_s))


def _by_nearest(nodes: Sequence[NodeId], cost_s: Cost) -> list[NodeId]:
    order, left = [nodes[0]], list(nodes[1:])
    while left:
        nearest = min(left, key=lambda node: cost_s(order[-1], node))
        left.remove(nearest)
        order.append(nearest)
    return order


def _uncrossed(order: list[NodeId], cost_s: Cost) -> list[NodeId]:
    """Turn parts of the ring round for as long as that makes it better, so often as it is long."""
    for _ in range(len(order)):
        turned = min(_turned(order), key=lambda other: _badness(other, cost_s), default=order)
        if _badness(turned, cost_s) >= _badness(order, cost_s):
            break
        order = turned
    return order


def _turned(order: Sequence[NodeId]) -> list[list[NodeId]]:
    size = len(order)
    return [
        [*order[:start], *reversed(order[start:end]), *order[end:]]
        for start in range(1, size)
        for end in range(start + 2, size + 1)
    ]


def _badness(order: Sequence[NodeId], cost_s: Cost) -> tuple[float, float]:
    costs = _costs(order, cost_s)
    return max(costs, default=0.0), round(sum(costs), 9)


def _worst_s(order: Sequence[NodeId], cost_s: Cost) -> float:
    return _badness(order, cost_s)[0]


def _costs(order: Sequence[NodeId], cost_s: Cost) -> list[float]:
    if len(order) < 2:
        return []
    return [cost_s(node, order[(n + 1) % len(order)]) for n, node in enumerate(order)]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"
