"""How long machines of a gang take to add up their gradients, as far as their links were measured.

Owns bringing model and links together. Doesn't know the arithmetic (`allreduce_cost`).
"""

from collections.abc import Collection
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from jupiterd.cluster.links.allreduce_cost import Wire, all_reduce_s
from jupiterd.cluster.training.stragglers import Exchange
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.planning.rank_order import qualities
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan


def exchange_times(
    connectivity: Connectivity,
    nodes: Collection[NodeId],
    shape: "ModelShape",
    plan: "TrainPlan",
) -> Exchange:
    """Return what tells how long some of these machines take, in seconds of each step.

    It tells 0 where a link between two of them wasn't measured: nobody is let go of for a guess.
    """
    known = qualities(connectivity, nodes)
    wires = {frozenset(pair): Wire.of(quality) for pair, quality in known.items()}

    @cache
    def exchange(gang: frozenset[NodeId]) -> float:
        used = [wires.get(frozenset(pair)) for pair in combinations(sorted(gang), 2)]
        measured = [wire for wire in used if wire is not None and wire.is_measured]
        if len(measured) < len(used):
            return 0.0
        return all_reduce_s(*_gradient(shape, plan), len(gang), measured)

    return exchange


def _gradient(shape: "ModelShape", plan: "TrainPlan") -> tuple[int, int]:
    """Return how many numbers a gradient has, and the bytes of each."""
    from jupiterd.cycle.training.adapters.adapter_size import (
        trained_parameters,  # with the models it takes 8 MB
    )

    return trained_parameters(shape, plan.options), 2 if plan.options.weights == "bf16" else 4
