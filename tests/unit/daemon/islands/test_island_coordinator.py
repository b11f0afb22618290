"""How the leader walks a run that islands train, from one outer step to the next."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    CycleFailed,
    Fact,
    ManifestFrozen,
    OuterStepTaken,
    RoleAssigned,
    TrainingStarted,
)
from jupiterd.cluster.ledger.island_runs import islands_of
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.islands.outer_orders import QUARANTINED
from jupiterd.daemon.catalog.outer_step_mapping import open_rounds
from jupiterd.daemon.islands.island_coordinator import IslandCoordinator
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.pseudo_gradients import ReportedPseudoGradient
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    PseudoGradientStored,
)
from jupiterd.error_groups import all_of
from jupiterd.errors import JupiterError, LossDivergedError
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.locations import config_folder
from jupiterd.protocol.frames import Progressed
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.cluster.building import CYCLE, admitted, data_asked, training
from tests.support.cluster.earlier_runs import EARLIER, trained_before
from tests.support.daemon.two_nodes import TIMEOUT_S, until
from tests.unit.daemon.cycles.test_run_driver import MADE, OUTPUTS, Workers, leads
from tests.unit.daemon.leader.test_going_on import MACHINE

PRESET = (config_folder() / "models" / "1m.yaml").read_text()
WEIGHTS = ArtifactId("9" * 64)
SEQ_LEN, STEPS, EVERY = 64, 50, 20
SETTINGS = {
    "max_steps": STEPS,
    "seq_len": SEQ_LEN,
    "gradient_accumulation_steps": 4,
    "ranks": 2,
    "islands": "on",
    "sync_every": EVERY,
}
BATCH = 8
ELSEWHERE = NodeId("e" * 32)


@asynccontextmanager
async def trains(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *facts: Fact,
    second: NodeId | None = None,
    has_third: bool = False,
    sync: str = "blocking",
    sync_every: int = EVERY,
) -> AsyncGenerator[tuple[TermServices, Workers]]:
    """A term whose run has two islands, or three, on the node that leads where none is named."""

    async def keep(_reach: ArtifactReach, _artifact: ArtifactId, _holder: object) -> None:
        pass

    async def is_in_reach(_reach: ArtifactReach, _artifact: str) -> bool:
        return True

    monkeypatch.setattr(ArtifactReach, "keep_two_copies", keep)
    monkeypatch.setattr(ArtifactReach, "is_in_reach", is_in_reach)
    workers = Workers(WorkResult({"weights": WEIGHTS}))
    manifest = ManifestFrozen(CYCLE, 1, "", OUTPUTS["tokenizer"], (OUTPUTS["shards"],), 99, 9_999)
    before = (replace(data_asked(), node=""), MADE, manifest, *facts)
    async with leads(folder, workers, *before) as leading:
        engines = f"mlx:{leading.term.self_id} torch:{second or leading.term.self_id}"
        nodes = {
            "island_nodes": f"{engines} torch:{leading.term.self_id}" if has_third else engines
        }
        how = {**SETTINGS, **nodes, "sync": sync, "sync_every": sync_every}
        asked = replace(training(), model_yaml=PRESET, settings=how)
        await leading.term.record(asked)
        leading.board.begin(CYCLE, 1, Phase.TRAIN, now_s())
        yield leading, workers


@asynccontextmanager
async def coordinating(leading: TermServices) -> AsyncGenerator[asyncio.Task[None]]:
    found = training_of(leading.term.state, CYCLE)
    coordinator = IslandCoordinator(leading, found)
    async with asyncio.timeout(TIMEOUT_S):
        task = asyncio.ensure_future(coordinator.train(found.data))
        await until(lambda: task.done() or bool(line(leading)))
        yield task
        task.cancel()
        await asyncio.wait({task})


def line(leading: TermServices) -> list[OuterStepTaken]:
    return [*leading.term.cycle(CYCLE).outer_branch().values()]


def shown(leading: TermServices) -> dict[str, Any]:
    """What people see of the run."""
    (running,) = leading.board.to_plain(now_s())
    return running


def islands(leading: TermServices) -> list[TrainingStarted]:
    return [started for _, started in islands_of(leading.term.state.cycles, CYCLE)]


def say(
    leading: TermServices,
    island: CycleId,
    norm: float = 1.0,
    elapsed_s: float = 10.0,
    logits: bytes = b"",
    digest: bytes = b"",
    stands_at: str = "",
) -> None:
    """Let an island's gang tell of its way in the oldest round that is open.

    stands_at: the outer step that its digest is of; the newest one, where it isn't given
    """
    rounds = open_rounds(leading.term.cycle(CYCLE))
    (name, taken), (newest, _) = rounds[0], rounds[-1]
    tokens = taken.steps * taken.batches[island] * SEQ_LEN
    about = elapsed_s, logits, 0, stands_at or newest, digest
    way = PseudoGradientStored(ArtifactId(island * 4), PseudoGradient(name, tokens, norm, *about))
    leading.pseudo_gradients.report(
        island, ReportedPseudoGradient(way, leading.term.self_id, now_s())
    )


def reach(leading: TermServices, island: CycleId, number: int) -> None:
    """Let an island's gang tell which outer step its weights contain."""
    leading.board.begin(island, 1, Phase.TRAIN, now_s(), part_of=CYCLE)
    told_of = Progressed(0, STEPS, "steps", {"outer_step": float(number)})
    leading.board.advance(island, "train", told_of, now_s())
    leading.pseudo_gradients.set_training(island, is_training=True)


async def test_all_islands_begin_with_weights_that_are_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, workers):
        async with coordinating(leading):
            pass
        ((_, order),) = workers.orders
        assert (order.task, order.inputs) == ("draw_weights", {"tokenizer": OUTPUTS["tokenizer"]})
        assert order.params["shape"]["vocab_size"] == 4096
        one, other = islands(leading)
        assert (one.name, other.name) == ("letters/1", "letters/2")
        assert (one.engine, other.engine) == ("mlx", "torch")
        assert one.nodes == other.nodes == (leading.term.self_id,)
        assert one.parent == other.parent == CYCLE
        assert one.settings["start_from"] == WEIGHTS
        assert one.settings["island_nodes"] == ""
        (first,) = line(leading)
        assert (first.number, first.islands, first.steps) == (0, (), EVERY)
        assert first.batches == dict.fromkeys(sorted((one.cycle, other.cycle)), BATCH // 2)
        assert first.cursor == EVERY * BATCH
        async with coordinating(leading):  # another leader goes on with the same
            assert (islands(leading), len(workers.orders)) == ([one, other], 1)


async def test_a_run_is_over_once_an_island_has_recorded_the_last_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading) as task:
        one, other = (each.cycle for each in islands(leading))
        for number in (1, 2, 3):
            say(leading, one)
            say(leading, other)
            await until(lambda number=number: len(line(leading)) > number)
        assert [step.steps for step in line(leading)] == [20, 20, 10, 0]
        last = line(leading)[-1]
        assert last.islands == tuple(sorted((one, other)))
        assert last.total_tokens == STEPS * BATCH * SEQ_LEN
        await until(lambda: shown(leading)["done"] == STEPS)  # while the last weights are written
        model = ArtifactId("a" * 64)
        made = CheckpointCommitted(one, 1, "", model, 4, STEPS, 9, 9, 2.5, is_final=True)
        await leading.term.record(made)
        await task
        final = leading.term.cycle(CYCLE).last_checkpoint(1)
        assert final is not None
        assert (final.artifact, final.step, final.tokens, final.cursor, final.loss) == (
            model, STEPS, STEPS * BATCH * SEQ_LEN, STEPS * BATCH, 2.5,
        )  # fmt: skip
        assert final.is_final


async def test_rounds_that_overlap_are_closed_one_after_another_while_the_next_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch, sync="overlapped") as (leading, _):
        async with coordinating(leading):
            one, other = (each.cycle for each in islands(leading))
            assert [step.steps for step in line(leading)] == [EVERY, EVERY]
            say(leading, one, elapsed_s=5.0)
            says = "outer step 2: 1 of 2 islands are in"
            await until(lambda: says in str(leading.board.to_plain(now_s())))
            say(leading, other, elapsed_s=15.0)
            await until(lambda: len(line(leading)) > 2)
            merged = EVERY * BATCH * SEQ_LEN
            await until(lambda: shown(leading)["done"] == EVERY)
            assert shown(leading)["values"]["tokens"] == merged
        async with coordinating(leading) as task:  # another leader goes on with the same
            for number in (3, 4):
                say(leading, one)
                say(leading, other)
                await until(lambda number=number: len(line(leading)) > number)
            assert [step.steps for step in line(leading)] == [20, 20, 10, 0, 0]
            assert [len(step.islands) for step in line(leading)] == [0, 0, 2, 2, 2]
            assert line(leading)[1].batches == {one: 4, other: 4}, "nobody was measured yet"
            assert line(leading)[2].batches == {one: 6, other: 2}
            assert line(leading)[-1].total_tokens == STEPS * BATCH * SEQ_LEN
            model = ArtifactId("a" * 64)
            made = CheckpointCommitted(one, 1, "", model, 4, STEPS, 9, 9, 2.5, is_final=True)
            await leading.term.record(made)
            await task


async def test_rounds_grow_after_one_in_which_islands_have_mostly_waited_unless_they_are_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for every, lengths in ((0, [15, 15, 20]), (15, [15, 15, 15])):
        of_run = trains(tmp_path / str(every), monkeypatch, second=ELSEWHERE, sync_every=every)
        async with of_run as (leading, _), coordinating(leading):
            for number in (1, 2):
                for island in line(leading)[-1].batches:
                    say(leading, CycleId(island), elapsed_s=1e-6)
                await until(lambda number=number, term=leading: len(line(term)) > number)
            assert [step.steps for step in line(leading)] == lengths


async def test_who_is_faster_takes_more_in_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        one, other = (each.cycle for each in islands(leading))
        say(leading, one, elapsed_s=5.0)
        say(leading, other, elapsed_s=15.0)
        await until(lambda: len(line(leading)) > 1)
        assert line(leading)[1].batches == {one: 6, other: 2}


async def test_who_was_faster_before_takes_more_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch, second=ELSEWHERE) as (leading, _):
        machine = replace(MACHINE, engines=("torch",))
        leading.machines.hardware_of = lambda _: machine
        fast = trained_before(1, "mlx", leading.term.self_id, tokens=90_000)
        await leading.term.record(replace(training(), cycle=EARLIER), *fast)
        await leading.term.record(*trained_before(2, "torch", ELSEWHERE, tokens=30_000))
        async with coordinating(leading):
            one, other = (each.cycle for each in islands(leading))
            assert line(leading)[0].batches == {one: 6, other: 2}


async def test_nobody_waits_for_an_island_that_has_failed_and_its_data_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        one, other = sorted(each.cycle for each in islands(leading))
        say(leading, other)
        await leading.term.record(CycleFailed(one, "work-failed", "its GPU is gone", ""))
        await until(lambda: len(line(leading)) > 1)
        first, then = line(leading)
        assert (then.islands, then.batches) == ((other,), {other: BATCH})
        assert list(then.left_out) == [one]
        assert then.positions[other].startswith(first.positions[one])
        says = "outer step 1: 1 of 2 islands, one is missing"
        await until(lambda: says in str(leading.board.to_plain(now_s())))


async def test_a_way_that_is_far_longer_than_the_others_is_left_out_and_its_data_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_three = trains(tmp_path, monkeypatch, has_third=True)
    async with of_three as (leading, _), coordinating(leading):
        one, other, far = sorted(each.cycle for each in islands(leading))
        say(leading, one, norm=1.0)
        say(leading, other, norm=1.1)
        say(leading, far, norm=50.0)
        await until(lambda: len(line(leading)) > 1)
        first, then = line(leading)
        assert then.islands == (one, other)
        assert then.left_out == {far: QUARANTINED}
        assert set(then.batches) == {one, other, far}, "it goes on with the weights of all"
        assert then.positions[one].startswith(first.positions[far])
        assert then.total_tokens == EVERY * (BATCH - first.batches[far]) * SEQ_LEN
        says = "outer step 1: 2 of 3 islands, one is left out"
        await until(lambda: says in str(leading.board.to_plain(now_s())))


async def test_where_all_islands_have_failed_the_run_does_with_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading) as task:
        failures = [
            CycleFailed(each.cycle, "too-large", "the model fits nowhere", "take a smaller one")
            for each in islands(leading)
        ]
        await leading.term.record(*failures)
        assert "the model fits nowhere" in str(await failure(task))


async def test_where_no_way_has_numbers_training_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading) as task:
        for island in islands(leading):
            say(leading, island.cycle, norm=float("inf"))
        assert isinstance(await failure(task), LossDivergedError)


async def failure(task: asyncio.Task[None]) -> JupiterError:
    await asyncio.wait({task})
    error = task.exception()
    if isinstance(error, BaseExceptionGroup):
        (error,) = all_of(error)
    assert isinstance(error, JupiterError)
    return error


async def test_a_way_counts_once_it_can_be_had_and_is_told_of_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.islands.outer_round_collection.RETRY_S", 0.01)
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        one, other = sorted(each.cycle for each in islands(leading))
        asked, is_back = asyncio.Event(), asyncio.Event()

        async def lose(_leading: TermServices, artifact: ArtifactId, _holder: object) -> None:
            if artifact == one * 4 and not is_back.is_set():
                asked.set()
                raise JupiterError("its node is gone")

        monkeypatch.setattr(ArtifactReach, "keep_two_copies", lose)
        say(leading, one)
        await asked.wait()
        say(leading, other)
        await asyncio.sleep(0)
        assert len(line(leading)) == 1
        is_back.set()
        await until(lambda: len(line(leading)) > 1)
        assert line(leading)[1].islands == (one, other)


async def test_an_outer_step_of_another_leader_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        first = line(leading)[0]
        one, other = sorted(each.cycle for each in islands(leading))
        theirs = replace(
            first, number=1, parent=fact_hash(first), islands=(one,), pseudo_gradients=(WEIGHTS,),
            tokens=(5_120,), total_tokens=5_120, first_step=20,
        )  # fmt: skip
        await leading.term.record(theirs)
        say(leading, one)
        say(leading, other)
        await until(lambda: len(line(leading)) > 2)
        assert line(leading)[2].parent == fact_hash(theirs)


async def test_an_island_that_never_began_has_no_part_until_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.cycle.islands.outer_round.LEAST_FIRST_GRACE_S", 0.0)
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        one, other = sorted(each.cycle for each in islands(leading))
        say(leading, one, elapsed_s=0.0)
        await until(lambda: len(line(leading)) > 1)
        assert set(line(leading)[1].batches) == {one}
        reach(leading, other, 1)
        say(leading, one)
        await until(lambda: len(line(leading)) > 2)
        assert set(line(leading)[2].batches) == {one, other}


async def test_an_island_that_is_behind_holds_nobody_up_until_it_has_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.cycle.islands.outer_round.LEAST_FIRST_GRACE_S", 0.0)
    monkeypatch.setattr("jupiterd.cycle.islands.outer_round.LEAST_GRACE_S", 0.0)
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        one, other = sorted(each.cycle for each in islands(leading))
        for number, (reached, has_part) in enumerate([(-1, False), (1, True)], 1):
            reach(leading, other, reached)
            say(leading, one, elapsed_s=0.0)
            await until(lambda number=number: len(line(leading)) > number)
            assert (other in line(leading)[number].batches) == has_part


async def test_an_island_whose_machine_was_away_has_a_part_again_once_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "max_steps", 90)
    async with trains(tmp_path, monkeypatch, second=ELSEWHERE) as (leading, _):
        alive = {leading.term.self_id, ELSEWHERE}
        leading.machines.alive = lambda: frozenset(alive)
        async with coordinating(leading):
            one, other = (each.cycle for each in islands(leading))
            say(leading, one, elapsed_s=5.0)
            say(leading, other, elapsed_s=15.0)
            await until(lambda: len(line(leading)) > 1)
            assert line(leading)[1].batches == {one: 6, other: 2}
            alive.remove(ELSEWHERE)
            say(leading, one)
            await until(lambda: len(line(leading)) > 2)
            assert set(line(leading)[2].batches) == {one}
            alive.add(ELSEWHERE)  # its old gang is over by now, and the new one has caught up
            reach(leading, other, 2)
            say(leading, one)
            await until(lambda: len(line(leading)) > 3)
            assert line(leading)[3].batches == {one: 6, other: 2}, "it is as fast as it was"


async def test_a_machine_that_comes_is_an_island_of_the_next_round_once_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.islands.island_join.LOOK_S", 0.01)
    monkeypatch.setattr("jupiterd.daemon.islands.island_join.SETTLE_S", 0.0)
    async with trains(tmp_path, monkeypatch) as (leading, _):
        found = frozenset((leading.term.self_id, ELSEWHERE))
        machine = replace(MACHINE, engines=("torch",))
        trainer = RoleAssigned(ELSEWHERE, "trainer", "it is fast", 1)
        await leading.term.record(admitted(ELSEWHERE), trainer)
        monkeypatch.setattr(Machines, "fit_nodes", lambda _: sorted(found))
        leading.machines.hardware_of = lambda _: machine
        leading.machines.alive = lambda: found
        async with coordinating(leading):
            one, other = (each.cycle for each in islands(leading))
            saved = CheckpointCommitted(
                one, 1, "", ArtifactId("a" * 64), 1, 12, 9, 9, 2.5, is_final=False
            )
            await leading.term.record(saved)
            await until(lambda: len(islands(leading)) > 2)
            *_, third = islands(leading)
            assert (third.name, third.nodes, third.engine) == ("letters/3", (ELSEWHERE,), "torch")
            assert (third.parent, third.settings["start_from"]) == (CYCLE, WEIGHTS)
            begun = leading.term.cycle(third.cycle).last_checkpoint(1)
            assert begun is not None
            assert (begun.artifact, begun.step, begun.parent) == (saved.artifact, 12, "")
            for number, takes_part in ((1, {one, other}), (2, {one, other, third.cycle})):
                say(leading, one)
                say(leading, other)
                await until(lambda number=number: len(line(leading)) > number)
                assert set(line(leading)[number].batches) == takes_part
                reach(leading, third.cycle, number)
            assert len(islands(leading)) == 3


async def test_one_that_came_and_is_far_too_slow_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        first, other = islands(leading)
        third = replace(first, cycle=CycleId("3" * 16), name="letters/3")
        await leading.term.record(third)
        reach(leading, third.cycle, 0)
        for number in (1, 2):
            for each in (first, other, third)[: number + 1]:
                say(leading, each.cycle, elapsed_s=100.0 if each is third else 1.0)
            await until(lambda number=number: len(line(leading)) > number)
            assert third.cycle in line(leading)[number].batches
        for each in (first, other, third):
            say(leading, each.cycle, elapsed_s=100.0 if each is third else 1.0)
        await until(lambda: len(line(leading)) > 3)
        assert third.cycle in line(leading)[3].islands, "what it has done counts"
        assert leading.term.cycle(third.cycle).wanted == "stopped"
