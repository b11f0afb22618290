"""An island that trains another model than the others isn't let in, and people are told why.

Owns what becomes of it. Doesn't know how logits are compared (`cycle.model_fingerprint`), or
computed. It is looked at in each round before which nothing of it was merged: its first one, and
those after it was away or has begun anew.
"""

import asyncio
import logging
from collections.abc import Mapping

from jupiterd.cluster.facts.facts import CycleFailed, OuterStepTaken
from jupiterd.cluster.ledger.island_runs import islands_of, number_of
from jupiterd.cycle.islands.outer_round import Closing, Way
from jupiterd.cycle.training.model_fingerprint import ModelMismatch, strangers
from jupiterd.daemon.leader.leading import Leading, name_of
from jupiterd.errors import StrangeIslandError
from jupiterd.ids import CycleId

log = logging.getLogger(__name__)


async def without_strangers(
    leading: Leading,
    run: CycleId,
    taken: OuterStepTaken,
    closing: Closing,
    ways: Mapping[str, Way],
) -> Closing:
    """Return how a round ends without those that train another model; their training ends.

    taken: the outer step that the round follows
    """
    told = {island: ways[island].logits for island in closing.counted}
    if told.keys() <= {*taken.islands}:
        return closing
    found = await asyncio.to_thread(strangers, told, {*taken.islands})
    for island, apart in found.items():
        await _refuse(leading, run, CycleId(island), apart)
    return closing.without(found)


async def _refuse(leading: Leading, run: CycleId, island: CycleId, apart: ModelMismatch) -> None:
    error = StrangeIslandError(
        f"it trains another model: with the same weights its logits are {apart.most:.2g} off those "
        f"of the others, and {apart.allowed:.2g} is allowed"
    )
    log.warning(
        "island_refused", extra={"run": run, "island": island, "apart": f"{apart.most:.3g}"}
    )
    name = island_name(leading, run, island)
    leading.board.explain(run, f"{name} isn't let in: {error.message}")
    await leading.record(CycleFailed(island, error.code, error.message, error.hint))


def island_name(leading: Leading, run: CycleId, island: CycleId) -> str:
    """Return what people call an island: its number, its machines and its engine."""
    found = islands_of(leading.journal.state.cycles, run)
    started = next(each for _, each in found if each.cycle == island)
    nodes = ", ".join(name_of(leading, node) for node in started.nodes)
    return f"island {number_of(started)} ({nodes}, {started.engine})"
