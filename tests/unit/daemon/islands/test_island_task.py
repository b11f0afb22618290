"""One island of a run: conducted as any training, and over with its run."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import Fact, TrainingStarted
from jupiterd.cluster.planning.engines import MLX, EngineChoice
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.cycle.training.plan import derive
from jupiterd.daemon.cycles import term_duties
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.rendezvous import Rendezvous
from jupiterd.daemon.islands.island_task import IslandTask
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.ids import CycleId
from tests.support.cluster.building import CYCLE, checkpoint, commanded, data_asked, training
from tests.support.daemon.shapes import tiny_shape
from tests.support.daemon.two_nodes import TIMEOUT_S
from tests.unit.daemon.cycles.test_run_driver import MADE, Workers, leads

ISLAND = CycleId("1" * 16)


def part(**settings: str) -> TrainingStarted:
    whole = training("letters/1")
    told = {**whole.settings, **settings}
    return replace(whole, cycle=ISLAND, parent=CYCLE, settings=told)


def leading_with(folder: Path, *facts: Fact):
    return leads(folder, Workers(WorkResult({})), data_asked(), MADE, training(), part(), *facts)


async def run_task(leading: TermServices) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await IslandTask(leading, ISLAND).run()


async def test_an_island_that_is_trained_is_over(tmp_path: Path) -> None:
    last = replace(checkpoint("k", is_final=True), cycle=ISLAND)
    async with leading_with(tmp_path, last) as leading:
        await run_task(leading)
        island = leading.term.cycle(ISLAND)
        assert [done.final_checkpoint for done in island.rounds] == ["k"]
        assert not leading.term.cycle(CYCLE).has_nothing_to_do


async def test_an_island_whose_run_is_over_is_over_too(tmp_path: Path) -> None:
    async with leading_with(tmp_path, commanded("stopped", 1)) as leading:
        await run_task(leading)
        island = leading.term.cycle(ISLAND)
        assert (island.wanted, island.rounds_committed) == ("stopped", 0)


async def test_a_leader_conducts_an_island_as_a_part_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, CycleId]] = []

    def kind(name: str) -> type:
        async def run(self: object) -> None:
            pass

        def begin(self: object, _leading: TermServices, cycle: CycleId) -> None:
            begun.append((name, cycle))

        return type(name, (), {"__init__": begin, "run": run})

    kinds = tuple(map(kind, ("cycle", "run", "island")))
    monkeypatch.setattr(term_duties, "_drivers", lambda: kinds)
    async with leading_with(tmp_path) as leading:
        for cycle in (CYCLE, ISLAND):
            await term_duties._run_driver(leading, cycle)
    assert begun == [("run", CYCLE), ("island", ISLAND)]


async def test_a_rank_of_an_island_is_told_of_what_it_is_a_part(tmp_path: Path) -> None:
    async with leads(tmp_path, Workers(WorkResult({})), training(), part(ways="bf16")) as leading:
        gang_plan = GangPlan(
            3, EngineChoice(MLX, (leading.term.self_id,), "as asked"), "", 0, 0.0, (4,)
        )
        meeting, plan = Rendezvous(), derive(tiny_shape(), 1)
        orders = RankOrders(
            leading.term,
            leading.machines,
            leading.reach,
            leading.calls,
            TrainedRound(ISLAND, 1, tiny_shape(), plan, CYCLE),
        )
        told = orders.params(gang_plan, meeting, 0)["island"]
        assert told == {
            "run": CYCLE,
            "round": 1,
            "island": ISLAND,
            "number": 1,
            "kind": "bf16",
        }
        of_a_run = replace(
            orders, trained_round=replace(orders.trained_round, cycle=CYCLE, parent="")
        )
        assert "island" not in of_a_run.params(gang_plan, meeting, 0)
