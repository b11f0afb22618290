"""Who trains a round of a cycle, and how islands do it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    BranchPinned,
    BranchSuspended,
    CheckpointCommitted,
    CycleStarted,
    CycleStateSet,
    Fact,
    ManifestFrozen,
    OuterStepTaken,
    TrainingStarted,
    WorkCompleted,
)
from jupiterd.cluster.ledger.island_runs import (
    TOO_SLOW,
    counting_islands,
    is_active,
    islands_in,
    islands_of,
    least_batch_of,
)
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.planning.engines import MLX, TORCH, EngineChoice
from jupiterd.cluster.planning.layouts import Island
from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.daemon.catalog.islands_audit import audit_round, rounds_of_islands
from jupiterd.daemon.cycles import train_phase
from jupiterd.daemon.cycles.cycle_driver import CycleDriver
from jupiterd.daemon.cycles.train_phase import ranks_here, trainer_of_round
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.islands.island_coordinator import IslandCoordinator
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.pseudo_gradients import ReportedPseudoGradient
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.gang_plan import plan_launch
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.daemon.queries.cycle.cycle_document import cycle_document
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    PseudoGradientStored,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.locations import config_folder
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.cluster.building import CYCLE, NODES, round_over, started
from tests.support.daemon.two_nodes import TIMEOUT_S, until
from tests.unit.daemon.cycles.test_run_driver import Workers, leads

ALONE = EngineChoice(TORCH, (NodeId("a"),), "as asked")

CONFIG = config_folder()
DOMAIN = (CONFIG / "domains" / "python.yaml").read_text()
DRAWN = ArtifactId("9" * 64)
FIRST, SECOND, OTHER = (ArtifactId(digit * 64) for digit in "abc")
EVERY = 50


def asked(own: NodeId, **settings: str | int) -> CycleStarted:
    """A cycle of three rounds, trained by two islands on the node that leads unless said."""
    told = {"islands": "mlx:a torch:b", "island_nodes": f"mlx:{own} torch:{own}"}
    return replace(
        started(rounds=3),
        domain_yaml=DOMAIN,
        model_yaml=(CONFIG / "models" / "1m.yaml").read_text(),
        settings={**told, "sync_every": EVERY, "sync": "blocking", **settings},
    )


def packed(number: int) -> WorkCompleted:
    outputs = {"tokenizer": ArtifactId("7" * 64), "shards": ArtifactId(f"{number}" * 64)}
    return WorkCompleted(CYCLE, number, "pack", f"r{number}/pack/0", NODES[0], outputs)


def trained(
    name: ArtifactId, number: int = 1, parent: str = "", tokens: int = 1_000, attempt: int = 1
) -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, number, parent, name, attempt, 10, tokens, 5, 3.5, is_final=True
    )


BEGUN = (packed(1), packed(2), trained(FIRST), round_over(FIRST))
"""A cycle whose first round is over."""


@asynccontextmanager
async def a_cycle(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *facts: Fact, **settings: str | int
) -> AsyncGenerator[TermServices]:
    async def keep(_reach: ArtifactReach, _artifact: ArtifactId, _holder: object) -> None:
        pass

    monkeypatch.setattr(ArtifactReach, "keep_two_copies", keep)
    monkeypatch.setattr(train_phase, "PATIENCE_S", 0.0)
    async with leads(folder, Workers(WorkResult({"weights": DRAWN}))) as leading:
        await leading.term.record(asked(leading.term.self_id, **settings), *facts)
        yield leading


@asynccontextmanager
async def coordinating(leading: TermServices, number: int) -> AsyncGenerator[asyncio.Task[None]]:
    trainer = await trainer_of_round(leading, CYCLE, number)
    assert isinstance(trainer, IslandCoordinator)
    async with asyncio.timeout(TIMEOUT_S):
        task = asyncio.ensure_future(
            trainer.train(training_of(leading.term.state, CYCLE, number).data)
        )
        await until(lambda: task.done() or bool(line(leading, number)))
        yield task
        task.cancel()
        await asyncio.wait({task})


def line(leading: TermServices, number: int) -> list[OuterStepTaken]:
    return [*leading.term.cycle(CYCLE).outer_branch(number).values()]


def islands(leading: TermServices, number: int) -> list[TrainingStarted]:
    cycles = leading.term.state.cycles
    return [begun for _, begun in islands_in(cycles, CYCLE, number)]


def say(leading: TermServices, island: CycleId, number: int) -> None:
    """Let an island's gang tell of its way in the outer round that is open."""
    last = line(leading, number)[-1]
    seq_len = training_of(leading.term.state, CYCLE, number).shape.seq_len
    tokens = last.steps * last.batches[island] * seq_len
    pseudo_gradient = PseudoGradient(fact_hash(last), tokens, 1.0, 10.0)
    way = PseudoGradientStored(ArtifactId(island * 4), pseudo_gradient)
    leading.pseudo_gradients.report(island, ReportedPseudoGradient(way, leading.term.self_id, 0.0))


async def go_through(leading: TermServices, number: int) -> None:
    """Let the islands tell of one way after another, until training is over."""
    while (last := line(leading, number)[-1]).steps:
        for island in last.batches:
            say(leading, CycleId(island), number)
        await until(lambda last=last: len(line(leading, number)) > last.number + 1)


async def save_last(leading: TermServices, number: int, model: ArtifactId) -> None:
    """Let the first island record the last weights of all."""
    first = islands(leading, number)[0].cycle
    last = line(leading, number)[-1]
    made = CheckpointCommitted(first, 1, "", model, 77, last.first_step, 9, 9, 2.5, is_final=True)
    await leading.term.record(made)


async def test_a_rounds_islands_begin_with_the_model_of_the_round_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *BEGUN) as leading:
        async with coordinating(leading, 2):
            one, other = islands(leading, 2)
            assert (one.engine, other.engine) == ("mlx", "torch")
            assert one.parent_round == other.parent_round == 2
            assert one.settings["start_from"] == other.settings["start_from"] == FIRST
            (first,) = line(leading, 2)
            assert (first.round, first.start, first.steps) == (2, FIRST, EVERY)
            assert first.total_tokens == 1_000, "the cycle's tokens go on"
            assert not line(leading, 1)
            of_island = training_of(leading.term.state, CYCLE, 2)
            assert of_island.data.shards == "2" * 64
        async with coordinating(leading, 2):  # another leader goes on with the same
            assert islands(leading, 2) == [one, other]


async def test_islands_are_recorded_with_a_sequence_for_each_where_the_text_makes_steps_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leads later has the same plan, though the cycle was begun with fewer in mind."""
    frozen = ManifestFrozen(CYCLE, 1, "", ArtifactId("7" * 64), (ArtifactId("1" * 64),), 20, 5_120)
    told: dict[str, str | int] = {"recipe": "tuning", "least_batch": 1}
    async with a_cycle(tmp_path, monkeypatch, packed(1), frozen, **told) as leading:
        assert training_of(leading.term.state, CYCLE, 1).plan.batch_sequences == 1
        for _ in range(2):
            async with coordinating(leading, 1):
                (first,) = line(leading, 1)
                assert sorted(first.batches.values()) == [1, 1]
                found = {least_batch_of(island) for island in islands(leading, 1)}
                assert found == {2}


async def test_a_gang_s_round_has_a_sequence_for_each_that_could_train_when_it_was_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for those who came after the cycle's start; what was frozen before stays as it was."""
    frozen = [
        ManifestFrozen(CYCLE, number, "", ArtifactId("7" * 64), (ArtifactId(f"{number}" * 64),),
                       20, 5_120, ranks=ranks)
        for number, ranks in ((1, 0), (2, 3))
    ]  # fmt: skip
    told: dict[str, str | int] = {"recipe": "tuning", "least_batch": 1, "islands": "off"}
    told["island_nodes"] = ""
    async with a_cycle(tmp_path, monkeypatch, *BEGUN, *frozen, **told) as leading:
        plans = [training_of(leading.term.state, CYCLE, number).plan for number in (1, 2)]
        assert [plan.batch_sequences for plan in plans] == [1, 3]
        assert ranks_here(leading.term, leading.placement, CYCLE) == 1
        trainer = await trainer_of_round(leading, CYCLE, 2)
        assert isinstance(trainer, GangSupervisor)


@pytest.mark.parametrize("least", [0, 1])
async def test_who_is_here_is_recorded_with_a_round_s_text_where_it_decides_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    outputs = {"tokenizer": ArtifactId("7" * 64), "shards": ArtifactId("2" * 64)}
    result = WorkResult(outputs, {"sequences": 20, "tokens": 5_120})
    item = WorkItem("r1/pack/0", Phase.PACK, "pack", {}, {})
    async with a_cycle(tmp_path, monkeypatch, islands="off", least_batch=least) as leading:
        driver = CycleDriver(leading, CYCLE)
        (frozen,) = driver._manifest(driver._view(), item, result)
        assert frozen.ranks == least, "one machine is here"


async def test_a_first_round_begins_with_weights_that_are_drawn_and_later_ones_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, packed(1), packed(2)) as leading:
        async with coordinating(leading, 1):
            first = islands(leading, 1)
            assert {island.settings["start_from"] for island in first} == {DRAWN}
        await leading.term.record(trained(FIRST), round_over(FIRST))
        async with coordinating(leading, 2):
            second = islands(leading, 2)
        ids = [island.cycle for island in (*first, *second)]
        assert len(set(ids)) == 4, "each round has islands of its own"


async def test_a_round_is_over_with_the_last_weights_of_an_island_and_so_are_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.islands.final_weights.MOMENT_S", 0.0)
    async with a_cycle(tmp_path, monkeypatch, *BEGUN) as leading:
        async with coordinating(leading, 2) as task:
            await go_through(leading, 2)
            await save_last(leading, 2, SECOND)
            await task
        state = leading.term.cycle(CYCLE)
        final = state.last_checkpoint(2)
        assert final is not None
        plan = training_of(leading.term.state, CYCLE, 2).plan
        assert (final.artifact, final.parent, final.step) == (SECOND, FIRST, plan.steps)
        assert final.is_final
        assert final.tokens == line(leading, 2)[-1].total_tokens > 1_000
        assert {state.wanted for state, _ in islands_of(cycles_of(leading), CYCLE)} == {"stopped"}
        seq_len = training_of(leading.term.state, CYCLE, 2).shape.seq_len
        proved = audit_round(state, 2, seq_len)
        assert rounds_of_islands(state) == [2]
        assert proved.audit.problems == ()
        assert proved.audit.cursor == plan.steps * plan.batch_sequences
        assert proved.audit.tokens == final.tokens - 1_000
        shown = document(leading)
        assert (shown["round"], shown["outer_steps"]) == (2, line(leading, 2)[-1].number)
        assert shown["inner_steps"] == EVERY
        assert [row["state"] for row in shown["islands"]] == ["done", "done"]
        row = next(p for p in shown["phases"] if (p["round"], p["phase"]) == (2, "train"))
        assert row["state"] == "done"
        assert "2 islands" in row["detail"]


def document(leading: TermServices) -> dict[str, Any]:
    cycles = cycles_of(leading)
    found = counting_islands(cycles, CYCLE)
    return cycle_document(cycles[CYCLE], None, model=None, has_leader=True, islands=found)


def cycles_of(leading: TermServices):
    return leading.term.state.cycles


async def test_a_closed_round_leaves_no_island_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *BEGUN) as leading:
        async with coordinating(leading, 2):
            await go_through(leading, 2)
        await leading.term.record(trained(SECOND, 2, FIRST, 9_999))
        driver = CycleDriver(leading, CYCLE)
        judged = WorkResult(
            {"verdict": ArtifactId("4" * 64)}, {},
            {"verdict": "HOLD", "reason": "as good", "val_bpb": 2.5},
        )  # fmt: skip
        await driver._close(driver._view(), judged)
        assert leading.term.cycle(CYCLE).rounds_committed == 2
        assert all(state.has_nothing_to_do for state, _ in islands_of(cycles_of(leading), CYCLE))


async def test_islands_of_another_line_rest_until_theirs_counts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = (trained(OTHER, tokens=999), round_over(OTHER))
    async with a_cycle(tmp_path, monkeypatch, *BEGUN, *branch) as leading:
        async with coordinating(leading, 2) as task:
            before, steps = islands(leading, 2), line(leading, 2)
            await leading.term.record(BranchPinned(CYCLE, OTHER, 1))
            await task  # it trains what counts no more
        assert not any(is_active(cycles_of(leading), leading.term.cycle(i.cycle)) for i in before)
        assert line(leading, 2) == []
        async with coordinating(leading, 2):
            begun = islands(leading, 2)
            assert {island.settings["start_from"] for island in begun} == {OTHER}
            assert not {i.cycle for i in begun} & {i.cycle for i in before}
        await leading.term.record(BranchPinned(CYCLE, FIRST, 2))
        assert (islands(leading, 2), line(leading, 2)) == (before, steps)
        assert all(is_active(cycles_of(leading), leading.term.cycle(i.cycle)) for i in before)


async def test_islands_of_a_cycle_that_was_stopped_go_on_with_it_but_for_the_slow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *BEGUN) as leading:
        async with coordinating(leading, 2):
            one, other = (island.cycle for island in islands(leading, 2))
        await leading.term.record(
            CycleStateSet(one, "stopped", "stopped by a person", 1),
            CycleStateSet(other, "stopped", TOO_SLOW, 1),
        )
        async with coordinating(leading, 2):
            await until(lambda: leading.term.cycle(one).wanted == "running")
            assert leading.term.cycle(other).wanted == "stopped"


async def test_what_a_gang_has_begun_a_gang_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = AttemptOpened(CYCLE, 2, 5, NODES[:1], "torch", FIRST, 0)
    async with a_cycle(tmp_path, monkeypatch, *BEGUN, opened) as leading:
        assert isinstance(await trainer_of_round(leading, CYCLE, 2), GangSupervisor)


ENDED = ArtifactId("e" * 64)
ON_TRUNK = (
    packed(1),
    packed(2),
    AttemptOpened(CYCLE, 1, 1, NODES[:1], "torch", "", 0),
    AttemptClosed(CYCLE, 1, "finished"),
    replace(trained(ENDED, tokens=700), is_final=False, on_trunk=True),
    trained(FIRST, parent=ENDED),
    round_over(FIRST),
)
"""A cycle whose first round is over, and whose trunk goes on."""


async def test_a_gang_goes_on_with_the_trunk_and_hangs_what_it_makes_below_the_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *ON_TRUNK, islands="off", island_nodes="") as leading:
        assert isinstance(await trainer_of_round(leading, CYCLE, 2), GangSupervisor)
        found = training_of(leading.term.state, CYCLE, 2)
        assert found.plan.warmup_steps == 0
        assert found.plan.learning_rate == found.shape.recipe.learning_rate
        launch = plan_launch(leading.term.cycle(CYCLE), 2, 1, ALONE)
        assert (launch.from_checkpoint, launch.from_step, launch.follows) == (ENDED, 0, FIRST)
        await leading.term.record(BranchSuspended(CYCLE, ENDED, is_suspended=True, edit=1))
        launch = plan_launch(leading.term.cycle(CYCLE), 2, 1, ALONE)
        assert (launch.from_checkpoint, launch.follows) == (FIRST, "")
        assert training_of(leading.term.state, CYCLE, 2).plan.warmup_steps > 0, "with new moments"


async def test_a_conductor_whose_trunk_is_lost_leaves_the_round_to_one_with_another_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *ON_TRUNK, islands="off", island_nodes="") as leading:
        trainer = await trainer_of_round(leading, CYCLE, 2)
        await leading.term.record(BranchSuspended(CYCLE, ENDED, is_suspended=True, edit=1))
        await trainer.train(training_of(leading.term.state, CYCLE, 2).data)
        assert not leading.term.cycle(CYCLE).open_attempts
        assert leading.term.cycle(CYCLE).last_checkpoint(2) is None


async def test_islands_begin_with_the_last_candidate_and_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *ON_TRUNK) as leading:
        async with coordinating(leading, 2):
            assert {island.settings["start_from"] for island in islands(leading, 2)} == {FIRST}
        plan = training_of(leading.term.state, CYCLE, 2, by_islands=True).plan
        assert (plan.warmup_steps > 0, plan.keeps_trunk) == (True, False)


async def test_a_gang_that_has_opened_an_attempt_on_the_trunk_goes_on_with_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = AttemptOpened(CYCLE, 2, 5, NODES[:1], "torch", ENDED, 0, follows=FIRST)
    async with a_cycle(tmp_path, monkeypatch, *ON_TRUNK, opened) as leading:
        assert isinstance(await trainer_of_round(leading, CYCLE, 2), GangSupervisor)


async def test_where_groups_apart_did_either_a_gangs_steps_count_and_its_promise_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *BEGUN) as leading:
        async with coordinating(leading, 2):
            begun = islands(leading, 2)
        await leading.term.record(AttemptOpened(CYCLE, 2, 5, NODES[:1], "torch", FIRST, 0))
        async with coordinating(leading, 2):
            await until(lambda: not leading.term.cycle(CYCLE).open_attempts)
            step = replace(trained(SECOND, 2, FIRST, 2_000), is_final=False)
            await leading.term.record(step)
        assert isinstance(await trainer_of_round(leading, CYCLE, 2), GangSupervisor)
        assert not any(is_active(cycles_of(leading), leading.term.cycle(i.cycle)) for i in begun)


@pytest.mark.parametrize("islands", ["auto", "off", "on"])
async def test_one_machine_alone_trains_a_round_without_islands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, islands: str
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *BEGUN, islands=islands, island_nodes="") as leading:
        assert isinstance(await trainer_of_round(leading, CYCLE, 2), GangSupervisor)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "2 islands train this round, as asked"),
        ({"islands": "auto", "island_nodes": ""}, ""),
        (
            {"islands": "on", "island_nodes": ""},
            "one gang trains this round, no islands can be made up of who is here",
        ),
        ({"islands": "off", "island_nodes": ""}, ""),
    ],
)
async def test_people_are_told_all_along_who_trains_a_round_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], says: str
) -> None:
    async with a_cycle(tmp_path, monkeypatch, *BEGUN, **settings) as leading:
        leading.board.begin(CYCLE, 2, Phase.TRAIN, now_s())
        await trainer_of_round(leading, CYCLE, 2)
        assert details(leading) == [says]
        leading.board.explain(CYCLE, "outer step 1: 2 islands")
        assert details(leading) == ["; ".join(filter(None, [says, "outer step 1: 2 islands"]))]
        leading.board.explain(CYCLE, "")
        assert details(leading) == [says]


def test_of_several_machines_it_is_told_that_one_gang_trains_and_of_one_alone_nothing() -> None:
    both = "one gang trains this round, no islands are known to be better"
    assert train_phase._trained_by(0, 2, is_asked=False) == both
    assert train_phase._trained_by(0, 1, is_asked=False) == ""


async def test_islands_that_were_planned_are_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"islands": "auto", "island_nodes": ""}
    async with a_cycle(tmp_path, monkeypatch, *BEGUN, **settings) as leading:
        parts = [Island.of(MLX, [leading.term.self_id]), Island.of(TORCH, [NODES[1]])]
        monkeypatch.setattr(train_phase, "islands_of_round", lambda *_: parts)
        leading.board.begin(CYCLE, 2, Phase.TRAIN, now_s())
        assert isinstance(await trainer_of_round(leading, CYCLE, 2), IslandCoordinator)
        said = "2 islands train this round, as planned of who is here"
        assert details(leading) == [said]


def details(leading: TermServices) -> list[str]:
    """What people read of each running phase."""
    return [running["detail"] for running in leading.board.to_plain(now_s())]
