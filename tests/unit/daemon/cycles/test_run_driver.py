"""How the leader walks a run, with workers that say what a test wants."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import Fact, ManifestFrozen, RoleAssigned, WorkCompleted
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.cycles.run_driver import RunDriver
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.leader import work_item
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.runtime.work_events import (
    Finished,
    Started,
    WorkEvent,
    WorkOrder,
)
from jupiterd.errors import (
    EmptySourceError,
    JupiterError,
    ModelTooLargeError,
    SourceUnreachableError,
    TooLittleTextError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.locations import config_folder
from jupiterd.protocol.frames import Progressed
from tests.support.cluster.building import CYCLE, NODES, checkpoint, commanded, data_asked, training
from tests.support.daemon.two_nodes import TIMEOUT_S, found, serving

OUTPUTS = {"tokenizer": ArtifactId("7" * 64), "shards": ArtifactId("5" * 64)}
COUNTS = {"tokens": 10_000.0, "vocab_size": 300.0}
MADE = WorkCompleted(CYCLE, 1, "pack", "r1/pack/0", NODES[0], OUTPUTS, COUNTS)


class Workers(Dispatcher):
    """Does every order the same way."""

    def __init__(self, ending: WorkResult | JupiterError) -> None:
        self.orders: list[tuple[NodeId, WorkOrder]] = []
        self._ending = ending

    async def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        self.orders.append((node, order))
        yield Started(7, "cpu")
        yield Progressed(5, 0, "tokens", {})
        if isinstance(self._ending, JupiterError):
            raise self._ending
        yield Finished(self._ending)


@asynccontextmanager
async def leads(folder: Path, workers: Workers, *facts: Fact) -> AsyncGenerator[TermServices]:
    async with serving(folder, "one") as one:
        own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
        await found(one, facts=(own, *facts))
        leading = one._begin_term(1)
        leading.calls.dispatcher = workers
        yield leading


async def conduct(leading: TermServices) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await RunDriver(leading, CYCLE).run()


def anywhere() -> Fact:
    return replace(data_asked(), node="")


async def test_a_data_set_is_made_and_the_run_is_over(tmp_path: Path) -> None:
    workers = Workers(WorkResult(OUTPUTS, COUNTS))
    async with leads(tmp_path, workers, anywhere()) as leading:
        await conduct(leading)
        run = leading.term.cycle(CYCLE)
        assert run.has_nothing_to_do
        assert run.prepared is not None
        assert run.prepared.outputs == OUTPUTS
        ((_, order),) = workers.orders
        assert (order.task, order.params["path"]) == ("prepare", "/letters")
        assert leading.board.to_plain(0.0) == []


async def test_a_folder_without_text_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    workers = Workers(EmptySourceError("the folder /letters is empty", "write some"))
    async with leads(tmp_path, workers, anywhere(), training()) as leading:
        await conduct(leading)
        failed = leading.term.cycle(CYCLE).failed
        assert failed is not None
        assert (failed.code, failed.message, failed.hint) == (
            "empty-source", "the folder /letters is empty", "write some",
        )  # fmt: skip


async def test_what_ends_an_item_is_what_was_said_last_where_there_was_too_little_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine before it just didn't have the folder."""
    two = list(NODES[:2])
    monkeypatch.setattr(Placement, "fit_workers", lambda _: two)
    monkeypatch.setattr(Placement, "place", lambda *_, **__: two[0])
    said = [TooLittleTextError("it has 3 documents"), EmptySourceError("there is no /letters")]
    workers = Workers(WorkResult({}))
    monkeypatch.setattr(workers, "run", lambda *_: _raising(said.pop()))
    async with leads(tmp_path, workers, anywhere()) as leading:
        await conduct(leading)
        failed = leading.term.cycle(CYCLE).failed
    assert failed is not None
    assert (failed.code, failed.message) == ("too-little-text", "it has 3 documents")


async def _raising(error: JupiterError) -> AsyncGenerator[WorkEvent]:
    yield Started(7, "cpu")
    raise error


async def test_a_way_to_the_internet_is_tried_for_a_while_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.leader.work_item.SOURCE_RETRY_S", 0.0)
    workers = Workers(SourceUnreachableError("wikipedia can't be had: no route"))
    async with leads(tmp_path, workers, anywhere()) as leading:
        await conduct(leading)
        failed = leading.term.cycle(CYCLE).failed
        assert failed is not None
        assert failed.code == "source-unreachable"
        assert "wikipedia can't be had" in failed.message
        assert len(workers.orders) == work_item.NEEDED.tries


async def test_text_on_a_machine_that_is_away_is_waited_for(tmp_path: Path) -> None:
    workers = Workers(WorkResult(OUTPUTS, COUNTS))
    async with leads(tmp_path, workers, data_asked()) as leading:  # NODES[0] isn't there
        coordinating = asyncio.ensure_future(RunDriver(leading, CYCLE).run())
        async with asyncio.timeout(TIMEOUT_S):
            while not _detail(leading):  # noqa: ASYNC110 - the board tells nobody
                await asyncio.sleep(0.01)
        coordinating.cancel()
        await asyncio.wait({coordinating})
        assert workers.orders == []
        assert leading.term.cycle(CYCLE).failed is None


def _detail(leading: TermServices) -> str:
    return "".join(live["detail"] for live in leading.board.to_plain(0.0))


async def test_what_is_trained_on_is_frozen_at_the_length_that_was_asked_for(
    tmp_path: Path,
) -> None:
    workers = Workers(WorkResult({}))
    async with leads(tmp_path, workers, anywhere(), MADE, training()) as leading:
        await RunDriver(leading, CYCLE)._step()
        manifest = leading.term.cycle(CYCLE).manifests[1]
        assert (manifest.sequences, manifest.tokens) == (9_999 // 64, 10_000)
        assert manifest.shards == (OUTPUTS["shards"],)


async def test_too_little_text_for_one_sequence_ends_the_run_with_the_reason(
    tmp_path: Path,
) -> None:
    asked = replace(training(), settings={"seq_len": 20_000, "ranks": 1})
    async with leads(tmp_path, Workers(WorkResult({})), anywhere(), MADE, asked) as leading:
        await conduct(leading)
        failed = leading.term.cycle(CYCLE).failed
        assert failed is not None
        assert "10,000 tokens, and one sequence takes 20,001" in failed.message


class Validators(Workers):
    """Prepare as they are told, and can't validate."""

    async def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        if order.task == "evaluate_held_out":
            raise ModelTooLargeError("not even one sequence fits")
        async for event in super().run(node, order):
            yield event


async def test_a_run_that_is_trained_does_not_fail_for_its_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.leader.work_item.RETRY_S", 0.0)
    outputs = OUTPUTS | {"holdout": ArtifactId("8" * 64)}
    made = replace(MADE, outputs=outputs)
    manifest = ManifestFrozen(CYCLE, 1, "", OUTPUTS["tokenizer"], (OUTPUTS["shards"],), 9, 900)
    trained = checkpoint("k", is_final=True)
    facts = (anywhere(), made, training(), manifest, trained)
    async with leads(tmp_path, Validators(WorkResult({})), *facts) as leading:
        await conduct(leading)
        run = leading.term.cycle(CYCLE)
        assert (run.failed, run.rounds_committed) == (None, 1)


async def test_results_and_models_are_kept_where_all_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []

    async def keep(_leading: TermServices, artifact: ArtifactId, _holder: NodeId) -> None:
        kept.append(artifact)

    monkeypatch.setattr(ArtifactReach, "keep_two_copies", keep)
    manifest = ManifestFrozen(CYCLE, 1, "", OUTPUTS["tokenizer"], (OUTPUTS["shards"],), 9, 900)
    facts = (anywhere(), training(), manifest, checkpoint("k", is_final=True))
    async with leads(tmp_path, Workers(WorkResult(OUTPUTS, COUNTS)), *facts) as leading:
        await conduct(leading)
    assert kept == [*OUTPUTS.values(), "k"]


async def test_the_plan_is_the_same_whoever_leads(tmp_path: Path) -> None:
    preset = (config_folder() / "models" / "1m.yaml").read_text()
    asked = replace(training(), model_yaml=preset)
    plans: list[object] = []
    for name in ("one", "other"):
        workers = Workers(WorkResult({}))
        async with leads(tmp_path / name, workers, anywhere(), MADE, asked) as leading:
            driver = RunDriver(leading, CYCLE)
            await driver._step()
            gang = driver._trainer()
            assert isinstance(gang, GangSupervisor)
            plans.append((gang._trained_round.plan, gang._trained_round.shape))
    assert plans[0] == plans[1]
    plan, shape = gang._trained_round.plan, gang._trained_round.shape
    assert (plan.steps, plan.batch_sequences) == (200, 64)
    assert (shape.seq_len, shape.vocab_size) == (64, 4096)


async def test_a_run_that_was_stopped_isn_t_conducted(tmp_path: Path) -> None:
    workers = Workers(WorkResult(OUTPUTS, COUNTS))
    async with leads(tmp_path, workers, anywhere(), commanded("stopped", 1)) as leading:
        await conduct(leading)
        assert workers.orders == []
