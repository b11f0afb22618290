"""Islands that begin anew from what another one has saved."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted, CycleFailed, TrainingStarted
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.training.island_seeds import BY_NO_GANG
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.cycle.islands.outer_orders import ADRIFT, QUARANTINED
from jupiterd.daemon.catalog.outer_step_mapping import open_rounds
from jupiterd.daemon.gangs import lost_outer_steps
from jupiterd.daemon.gangs.island_reseed import IslandReseed, reason_to_begin_anew
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.gang_plan import plan_launch
from jupiterd.errors import (
    IslandLeftOutError,
    IslandLostError,
    StateNotFetchedError,
    WorkerCrashedError,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId
from tests.support.cluster.building import CYCLE, outer_step, training
from tests.unit.daemon.cycles.test_run_driver import Workers, leads
from tests.unit.daemon.leader.test_going_on import MACHINE

ONE, TWO = CycleId("1" * 16), CycleId("2" * 16)
WITHOUT = StateNotFetchedError("the other islands went on without this one")
AGAIN = IslandLeftOutError("its way was left out twice running")
FIRST_WEIGHTS = "9" * 64


def island(cycle: CycleId, leading: TermServices) -> TrainingStarted:
    asked = training()
    settings = {**asked.settings, "start_from": FIRST_WEIGHTS}
    return replace(
        asked, cycle=cycle, name=f"letters/{cycle[0]}", parent=CYCLE, settings=settings,
        nodes=(leading.term.self_id,), engine="torch",
    )  # fmt: skip


async def take_step(leading: TermServices, *left_out: CycleId, reason: str = QUARANTINED) -> None:
    """Add an outer step to the line, and a round of 30 steps in which both have a part."""
    rounds = open_rounds(leading.term.cycle(CYCLE))
    number, parent = (rounds[-1][1].number + 1, rounds[-1][0]) if rounds else (0, "")
    step = replace(outer_step(number, parent), batches={ONE: 4, TWO: 4})
    await leading.term.record(replace(step, left_out=dict.fromkeys(left_out, reason)))


def saved(cycle: CycleId, step: int, tokens: int = 0, parent: str = "") -> CheckpointCommitted:
    name = ArtifactId(f"{cycle[0]}{step:03}" * 16)
    return CheckpointCommitted(
        cycle, 1, parent, name, 1, step, tokens or step, step, 2.5, is_final=False
    )


@pytest.fixture
async def leading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[TermServices]:
    """A term whose run has two islands, and three rounds behind it."""

    async def is_in_reach(_reach: ArtifactReach, artifact: str) -> bool:
        return artifact not in GONE

    GONE.clear()
    monkeypatch.setattr(ArtifactReach, "is_in_reach", is_in_reach)
    async with leads(tmp_path, Workers(WorkResult({}))) as leading:
        leading.machines.hardware_of = lambda _: replace(MACHINE, engines=("torch",))
        leading.machines.answering = lambda: frozenset({leading.term.self_id})
        await leading.term.record(training(), island(ONE, leading), island(TWO, leading))
        for _ in range(3):
            await take_step(leading)
        yield leading


ALONE = EngineChoice(TORCH, (NodeId("a"),), "as asked")

GONE: set[str] = set()
"""Nobody in reach has these."""


def two(leading: TermServices) -> IslandReseed:
    return IslandReseed(leading.term, leading.board, leading.reach, TWO, CYCLE)


def start(leading: TermServices) -> tuple[str, int]:
    gang_plan = plan_launch(leading.term.cycle(TWO), 1, 1, ALONE)
    return gang_plan.from_checkpoint, gang_plan.from_step


async def test_the_next_attempt_starts_from_the_newest_checkpoint_of_another(
    leading: TermServices,
) -> None:
    own, seed = saved(TWO, 80, tokens=9_000), saved(ONE, 65)
    await leading.term.record(own, saved(ONE, 40), replace(seed, parent=saved(ONE, 40).artifact))
    assert start(leading) == (own.artifact, 80)
    assert await two(leading).begin(own.artifact, WITHOUT)
    assert start(leading) == (seed.artifact, 65)
    last = leading.term.cycle(TWO).last_checkpoint(1)
    assert last is not None
    assert (last.parent, last.attempt, last.tokens) == (own.artifact, BY_NO_GANG, 9_001)


async def test_where_that_cant_catch_up_either_the_next_one_is_tried(leading: TermServices) -> None:
    older, newer = saved(ONE, 40), saved(ONE, 65)
    await leading.term.record(older, replace(newer, parent=older.artifact))
    assert await two(leading).begin("", WITHOUT)
    assert start(leading) == (newer.artifact, 65)
    assert await two(leading).begin(newer.artifact, WITHOUT)
    assert start(leading) == (older.artifact, 40)
    assert not await two(leading).begin(older.artifact, WITHOUT), "a newer one will come"
    assert start(leading) == (older.artifact, 40)


async def test_what_nobody_in_reach_has_is_passed_over_and_waited_for(
    leading: TermServices,
) -> None:
    older, newer = saved(ONE, 40), saved(ONE, 65)
    await leading.term.record(older, replace(newer, parent=older.artifact))
    GONE.update((older.artifact, newer.artifact))
    assert not await two(leading).begin("", WITHOUT)
    assert start(leading) == ("", 0)
    GONE.remove(older.artifact)
    assert await two(leading).begin("", WITHOUT)
    assert start(leading) == (older.artifact, 40)


async def test_where_no_other_has_saved_anything_it_goes_back_to_the_first_weights(
    leading: TermServices,
) -> None:
    older, newer = saved(TWO, 40), saved(TWO, 65)
    await leading.term.record(older, replace(newer, parent=older.artifact))
    for before, after in ((newer, (older.artifact, 40)), (older, ("", 0))):
        assert await two(leading).begin(before.artifact, WITHOUT)
        assert start(leading) == after
    assert not await two(leading).begin("", WITHOUT), "the other one will save something"
    await leading.term.record(CycleFailed(ONE, "work-failed", "its GPU is gone", ""))
    with pytest.raises(IslandLostError, match="went on without this one"):
        await two(leading).begin("", WITHOUT)


async def test_what_it_has_saved_since_the_first_weights_is_tried_before_it_is_lost(
    leading: TermServices,
) -> None:
    own = saved(TWO, 40)
    await leading.term.record(own, CycleFailed(ONE, "work-failed", "its GPU is gone", ""))
    assert not await two(leading).begin("", WITHOUT), "its attempt has begun with the first weights"
    assert start(leading) == (own.artifact, 40)
    assert await two(leading).begin(own.artifact, WITHOUT)
    assert start(leading) == ("", 0)


async def test_a_gang_ends_once_its_way_was_left_out_twice_running(leading: TermServices) -> None:
    anew = two(leading)
    await leading.term.record(saved(ONE, 65))
    anew.check()
    await take_step(leading, TWO)
    anew.check()
    await take_step(leading, TWO)
    with pytest.raises(IslandLeftOutError, match="twice running"):
        anew.check()
    anew.check()  # once for each such step
    IslandReseed(leading.term, leading.board, leading.reach, ONE, CYCLE).check()


async def test_a_gang_whose_weights_are_not_those_of_the_others_ends_at_once_and_once(
    leading: TermServices,
) -> None:
    anew, own = two(leading), saved(TWO, 65)
    await leading.term.record(own)
    await take_step(leading, TWO, reason=ADRIFT)
    anew.check()  # nobody else has saved anything, and it goes on meanwhile
    seed = saved(ONE, 65)
    await leading.term.record(seed)
    with pytest.raises(IslandLeftOutError, match="aren't those of the others") as raised:
        anew.check()
    assert await anew.begin(own.artifact, raised.value)
    assert start(leading) == (seed.artifact, 65)
    await leading.term.record(replace(saved(ONE, 95), parent=seed.artifact))
    anew.check()
    await take_step(leading, TWO, reason=ADRIFT)  # of what it had told before it began anew
    anew.check()
    await take_step(leading, TWO, reason=ADRIFT)
    with pytest.raises(IslandLeftOutError):
        anew.check()
    IslandReseed(leading.term, leading.board, leading.reach, ONE, CYCLE).check()


async def test_an_island_that_has_begun_anew_is_left_alone_by_whoever_leads_next(
    leading: TermServices,
) -> None:
    older, newer = saved(ONE, 40), saved(ONE, 65)
    await leading.term.record(older, replace(newer, parent=older.artifact))
    await take_step(leading, TWO, reason=ADRIFT)
    with pytest.raises(IslandLeftOutError) as raised:
        two(leading).check()
    assert await two(leading).begin("", raised.value)
    assert start(leading) == (newer.artifact, 65)
    after = two(leading)
    after.check()
    await take_step(leading, TWO, reason=ADRIFT)  # of what it had told before it began anew
    after.check()
    await take_step(leading, TWO, reason=ADRIFT)
    with pytest.raises(IslandLeftOutError):
        after.check()


async def test_an_island_begins_with_nothing_that_another_one_saved_with_other_weights(
    leading: TermServices,
) -> None:
    older, newer = saved(ONE, 40), saved(ONE, 65)
    await leading.term.record(older, replace(newer, parent=older.artifact))
    await take_step(leading, ONE, reason=ADRIFT)
    assert await two(leading).begin("", WITHOUT)
    assert start(leading) == (older.artifact, 40)


async def test_one_that_has_tried_all_that_there_is_trains_on_with_other_weights(
    leading: TermServices,
) -> None:
    await leading.term.record(saved(ONE, 65))
    assert await two(leading).begin("", AGAIN)
    await take_step(leading, TWO, reason=ADRIFT)
    two(leading).check()


async def test_where_nothing_can_take_its_place_a_state_that_is_left_out_stays(
    leading: TermServices,
) -> None:
    own = saved(TWO, 65)
    await leading.term.record(own)
    assert not await two(leading).begin(own.artifact, AGAIN)
    assert start(leading) == (own.artifact, 65)


def test_only_a_state_that_is_of_no_use_is_a_reason() -> None:
    crash = WorkerCrashedError("the train worker ended with status 1")
    assert reason_to_begin_anew([crash]) is None
    assert reason_to_begin_anew([crash, WITHOUT]) is WITHOUT
    assert reason_to_begin_anew([AGAIN]) is AGAIN


async def test_where_nobody_in_reach_has_what_the_end_of_the_line_merged_it_goes_on_without(
    leading: TermServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(lost_outer_steps, "now_s", lambda: now_s)
    own, away = saved(TWO, 65), saved(ONE, 65)
    way = ArtifactId("6" * 64)
    GONE.update((away.artifact, way))
    before = open_rounds(leading.term.cycle(CYCLE))[-1][0]
    last = replace(outer_step(3, before), pseudo_gradients=(way,))
    await leading.term.record(own, away, last)
    end = fact_hash(last)
    island = two(leading)
    for at_s, there in ((100.0, end), (100.0 + lost_outer_steps.PATIENCE_S, before)):
        now_s = at_s
        assert not await island.begin(own.artifact, WITHOUT)
        assert start(leading) == (own.artifact, 65)
        assert [*leading.term.cycle(CYCLE).outer_branch()][-1] == there
    GONE.clear()
    assert await island.begin(own.artifact, WITHOUT), "who is back has something to begin with"
