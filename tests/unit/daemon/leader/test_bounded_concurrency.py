"""How many items run at a time, and on which nodes small students are trained."""

import asyncio
from dataclasses import replace

import pytest

from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.daemon.leader import bounded_concurrency
from jupiterd.daemon.leader.bounded_concurrency import run_spread, training_places
from jupiterd.ids import NodeId
from tests.support.daemon.term_parts import FakeMachines, FakePlacement


def items(count: int) -> list[WorkItem]:
    return [WorkItem(f"r1/gate/{number}", Phase.GATE, "train_proxy") for number in range(count)]


async def test_no_more_items_run_than_there_are_places() -> None:
    running, most, done = 0, 0, list[str]()

    async def do(item: WorkItem) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        done.append(item.id)

    await run_spread(items(7), lambda _: 3, do)
    assert most == 3
    assert done == [item.id for item in items(7)]


async def test_a_node_that_comes_later_is_made_use_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_concurrency, "LOOK_S", 0.001)
    places, both_run = 1, asyncio.Event()
    running = set[str]()

    async def do(item: WorkItem) -> None:
        nonlocal places
        running.add(item.id)
        places = 2
        if len(running) == 2:
            both_run.set()
        await both_run.wait()

    await asyncio.wait_for(run_spread(items(2), lambda _: places, do), 10)


async def test_what_fails_ends_the_others() -> None:
    async def do(item: WorkItem) -> None:
        if item.id.endswith("1"):
            raise ValueError(item.id)
        await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup):
        await run_spread(items(3), lambda _: 2, do)


def placed(**gpus_of: int) -> FakePlacement:
    """Return who gets work on nodes with so many GPUs."""
    box = Hardware("Linux", "x86_64", "cpu", 8, 16 << 30, engines=("torch",))
    machines = {
        NodeId(name): replace(box, gpus=(Gpu("a GPU", name, 8 << 30, "cuda"),) * count)
        for name, count in gpus_of.items()
    }
    return FakePlacement(
        FakeMachines(machines), [Seat(node, "hybrid", True, 0) for node in machines]
    )


def test_small_students_are_trained_where_there_are_gpus() -> None:
    mixed = placed(a=0, b=1, c=2)
    assert mixed.slow_workers() == {"a"}
    assert training_places(mixed) == 2
    without = placed(a=0, b=0, c=0)
    assert without.slow_workers() == frozenset()
    assert training_places(without) == 3
