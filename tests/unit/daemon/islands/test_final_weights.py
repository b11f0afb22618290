"""From which island the last weights of all are recorded."""

import asyncio
from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted, CycleFailed
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cycle.islands.outer_orders import ADRIFT
from jupiterd.daemon.islands import final_weights
from jupiterd.daemon.islands.final_weights import FinalWeights
from jupiterd.errors import JupiterError
from tests.support.cluster.building import CYCLE
from tests.support.daemon.two_islands import ONE, OTHER, STEP, A, TwoIslands, final_of

pytestmark = pytest.mark.looptime  # nobody waits here but by the clock of the loop

TIMEOUT_S = 5.0


def waiting_for(two: TwoIslands) -> asyncio.Task[None]:
    final = FinalWeights(two.term, two.roster, two.pseudo_gradients, two.of)
    return asyncio.ensure_future(final.record(STEP, lambda: False))


def recorded(two: TwoIslands) -> list[str]:
    facts = [fact for fact in two.term.recorded if isinstance(fact, CheckpointCommitted)]
    return [fact.artifact for fact in facts if fact.cycle == CYCLE]


async def test_the_first_island_that_has_recorded_its_last_weights_has_those_of_all() -> None:
    two = TwoIslands()
    task = waiting_for(two)
    await asyncio.sleep(0)
    assert recorded(two) == []
    await two.term.record(final_of(OTHER, "b" * 64))
    await asyncio.wait_for(task, TIMEOUT_S)
    assert recorded(two) == ["b" * 64]
    assert two.roster.state.last_checkpoint(1) is not None


async def test_weights_of_an_island_that_was_adrift_count_only_where_no_other_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after = replace(STEP, number=1, parent=fact_hash(STEP), left_out={OTHER: ADRIFT})
    two = TwoIslands(STEP, after)
    monkeypatch.setattr(final_weights, "LOOK_S", 0.001)
    await two.term.record(final_of(OTHER, "b" * 64))
    task = waiting_for(two)
    await asyncio.sleep(0.02)
    assert not task.done(), "the other one has what all have"
    monkeypatch.setattr(final_weights, "LOST_GRACE_S", 0.0)
    two.leave(A)
    await asyncio.wait_for(task, TIMEOUT_S)
    assert recorded(two) == ["b" * 64]


async def test_where_all_islands_have_failed_nobody_is_waited_for() -> None:
    two = TwoIslands()
    for island in (ONE, OTHER):
        await two.term.record(CycleFailed(island, "disk-full", "no room", ""))
    with pytest.raises(JupiterError, match="no room"):
        await asyncio.wait_for(waiting_for(two), TIMEOUT_S)
