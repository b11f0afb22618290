"""An island that trains another model than the others isn't let in, and the reason is shown.

Owns what becomes of it. Doesn't know how logits are compared (`cycle.training.model_fingerprint`),
or computed. It is looked at in each round before which nothing of it was merged: its first one, and
those after it was away or has begun anew.
"""

import asyncio
import logging
from collections.abc import Mapping

from jupiterd.cluster.facts.facts import CycleFailed, OuterStepTaken
from jupiterd.cluster.ledger.island_runs import islands_of, number_of
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.training.model_fingerprint import ModelMismatch, strangers
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import StrangeIslandError
from jupiterd.ids import CycleId
from jupiterd.protocol.training_values import PseudoGradient

log = logging.getLogger(__name__)


async def without_strangers(
    term: Term,
    board: ProgressBoard,
    machines: Machines,
    taken: OuterStepTaken,
    closing: Closing,
    pseudo_gradients: Mapping[str, PseudoGradient],
) -> Closing:
    """Return how a round ends without those that train another model; their training ends.

    taken: the outer step that the round follows
    """
    logits = {island: pseudo_gradients[island].logits for island in closing.counted}
    if logits.keys() <= {*taken.islands}:
        return closing
    found = await asyncio.to_thread(strangers, logits, {*taken.islands})
    for island, apart in found.items():
        await _refuse(term, board, machines, taken.cycle, CycleId(island), apart)
    return closing.without(found)


async def _refuse(
    term: Term,
    board: ProgressBoard,
    machines: Machines,
    run: CycleId,
    island: CycleId,
    apart: ModelMismatch,
) -> None:
    error = StrangeIslandError(
        f"it trains another model: with the same weights its logits are {apart.most:.2g} off those "
        f"of the others, and {apart.allowed:.2g} is allowed"
    )
    log.warning(
        "island_refused", extra={"run": run, "island": island, "apart": f"{apart.most:.3g}"}
    )
    name = island_name(term, machines, run, island)
    board.explain(run, f"{name} isn't let in: {error.message}")
    await term.record(CycleFailed(island, error.code, error.message, error.hint))


def island_name(term: Term, machines: Machines, run: CycleId, island: CycleId) -> str:
    """Return what people call an island: its number, its machines and its engine."""
    found = islands_of(term.state.cycles, run)
    started = next(each for _, each in found if each.cycle == island)
    nodes = ", ".join(machines.name_of(node) for node in started.nodes)
    return f"island {number_of(started)} ({nodes}, {started.engine})"
