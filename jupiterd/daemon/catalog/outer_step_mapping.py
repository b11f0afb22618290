"""Outer steps as facts, and as the values that orders are worked out with.

Owns the translation. Doesn't know how a round goes (`cycle.islands.outer_orders`).
"""

from collections.abc import Sequence

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.positions import Positions, read, written
from jupiterd.cycle.islands.outer_orders import OuterOrder
from jupiterd.ids import ArtifactId, CycleId


def fact_of(
    order: OuterOrder, run: CycleId, parent: str, pseudo_gradients: Sequence[ArtifactId]
) -> OuterStepTaken:
    """Return what is recorded of an order.

    Args:
        order: the outer step, and the round that follows.
        run: whose islands they are.
        parent: hash of the step before; empty for the first.
        pseudo_gradients: of its islands, in their order.
    """
    return OuterStepTaken(
        cycle=run,
        number=order.number,
        parent=parent,
        islands=tuple(map(CycleId, order.islands)),
        pseudo_gradients=tuple(pseudo_gradients),
        tokens=order.tokens,
        weights=order.weights,
        rate=order.rate,
        momentum=order.momentum,
        total_tokens=order.total_tokens,
        first_step=order.first_step,
        steps=order.steps,
        batches=dict(order.batches),
        positions={name: written(ranges) for name, ranges in order.positions.items()},
        cursor=order.left.cursor,
        returned=written(order.left.returned),
        left_out=dict(order.left_out),
        lag=order.lag,
    )


def order_of(fact: OuterStepTaken) -> OuterOrder:
    """Return what was recorded.

    Raises:
        Bug: its positions can't be read.
    """
    return OuterOrder(
        number=fact.number,
        islands=fact.islands,
        tokens=fact.tokens,
        weights=fact.weights,
        rate=fact.rate,
        momentum=fact.momentum,
        total_tokens=fact.total_tokens,
        first_step=fact.first_step,
        steps=fact.steps,
        batches=fact.batches,
        positions={name: read(text) for name, text in fact.positions.items()},
        left=Positions(fact.cursor, read(fact.returned)),
        left_out=fact.left_out,
        lag=fact.lag,
    )


def open_rounds(run: CycleState, round_number: int = 1) -> list[tuple[str, OuterStepTaken]]:
    """Return the outer steps of a cycle's round whose orders nothing has closed, with their hashes.

    They are of the line that counts: the oldest comes first, the line's last step last; there is
    none before the first step.
    """
    line = [*run.outer_branch(round_number).items()]
    return line[-line[-1][1].lag :] if line else []
