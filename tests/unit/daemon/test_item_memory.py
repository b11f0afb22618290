"""An item whose worker runs out of memory: done with half as much at a time, never as it was."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupiterd.cycle.work import HALVINGS, Phase, WorkItem, WorkResult
from jupiterd.daemon import item_runner
from jupiterd.daemon.item_runner import MAX_FAILURES, ItemRunner
from jupiterd.daemon.leading import Leading
from jupiterd.daemon.progress import ProgressBoard
from jupiterd.daemon.work_events import Finished, WorkOrder
from jupiterd.errors import ModelTooLargeError, OutOfMemoryError, WorkFailedError
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.workers.memory_room import halved
from tests.unit.cluster.building import CYCLE

BEGINS_WITH = 64
MODEL = {"model": ArtifactId("a1" * 32)}


def order(_: object, __: str, task: str, params: Mapping[str, Any]) -> WorkOrder:
    return WorkOrder("w", 1, task, params, {})


def recorded_id(_: int, __: str, item: str) -> str:
    return item


class Cluster:
    """Nodes whose workers are killed for memory above so many at a time."""

    def __init__(self, rooms: Mapping[str, int], faults: Sequence[str] = ()) -> None:
        self.rooms, self.tries = rooms, list[tuple[str, int]]()
        self.faults = faults

    async def work(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[object]:
        if self.faults:
            self.tries.append((node, BEGINS_WITH))
            raise WorkFailedError(self.faults[len(self.tries) - 1])
        if "server" in order.params:
            self.tries.append((node, BEGINS_WITH))
            raise OutOfMemoryError("the worker was killed")
        size = halved(BEGINS_WITH, order.params, "prompt")
        self.tries.append((node, size))
        if size > self.rooms[node]:
            raise OutOfMemoryError("the worker was killed")
        yield Finished(WorkResult({}, {}, {}))

    def place(self, *, needs_engine: bool, without: frozenset[NodeId] = frozenset()) -> NodeId:
        del needs_engine
        return NodeId(next((n for n in self.rooms if n not in without), next(iter(self.rooms))))

    async def run(self, task: str = "generate", params: Mapping[str, Any] | None = None) -> None:
        leading = SimpleNamespace(
            run=self.work,
            board=ProgressBoard(),
            fit_workers=lambda: [NodeId(name) for name in self.rooms],
            hardware_of={}.get,
            place=self.place,
            order=order,
            cycle=lambda *_: SimpleNamespace(steering=SimpleNamespace(recorded_id=recorded_id)),
        )
        item = WorkItem("r1/generate/0", Phase.GENERATE, task, params or {}, MODEL)
        await ItemRunner(cast("Leading", leading), CYCLE).run(1, item)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: float) -> None: ...

    monkeypatch.setattr(item_runner.asyncio, "sleep", at_once)


@pytest.mark.parametrize(
    "task", ["collect", "generate", "evaluate", "evaluate_held_out", "train_proxy"]
)
async def test_a_killed_item_is_done_with_half_as_many_at_a_time(task: str) -> None:
    cluster = Cluster({"one": 5})
    await cluster.run(task)
    assert cluster.tries == [("one", size) for size in (64, 32, 16, 8, 4)]


async def test_it_is_never_tried_again_at_the_same_size_on_a_node() -> None:
    cluster = Cluster({"one": 0, "two": 4})
    await cluster.run()
    assert cluster.tries[-1] == ("two", 4)
    assert len(set(cluster.tries)) == len(cluster.tries)


async def test_where_not_even_one_fits_anywhere_it_ends_in_words() -> None:
    cluster = Cluster({"one": 0, "two": 0})
    with pytest.raises(ModelTooLargeError, match="with a single prompt at a time"):
        await cluster.run()
    assert len(set(cluster.tries)) == len(cluster.tries)
    assert {node for node, size in cluster.tries if size == 1} == {"one", "two"}


@pytest.mark.parametrize(("task", "params"), [("pack", {}), ("generate", {"server": {"u": 1}})])
async def test_what_can_not_be_halved_is_tried_once_on_each_node_and_never_again_as_it_was(
    task: str, params: Mapping[str, Any]
) -> None:
    cluster = Cluster({"one": 0, "two": 0})
    with pytest.raises(OutOfMemoryError, match="the worker was killed") as caught:
        await cluster.run(task, params)
    assert [node for node, _ in cluster.tries] == ["one", "two"]
    assert "it isn't tried again as it was" in caught.value.hint


async def test_a_worker_that_fails_in_the_same_words_again_would_do_so_for_ever() -> None:
    cluster = Cluster({"one": 0}, ["KeyError: 'a'", "KeyError: 'b'", "KeyError: 'a'"])
    with pytest.raises(WorkFailedError, match="KeyError: 'a'"):
        await cluster.run("pack")
    assert len(cluster.tries) == MAX_FAILURES == 3, "others may pass"
    cluster = Cluster({"one": 0}, ["KeyError: 'a'"] * 3)
    with pytest.raises(WorkFailedError, match="KeyError: 'a'"):
        await cluster.run("pack")
    assert len(cluster.tries) == 2, "the second time shows that the first was no accident"


def test_a_worker_begins_with_so_much_less() -> None:
    assert halved(8, {}, "text") == 8
    assert halved(8, {HALVINGS: 3}, "text") == 1
    with pytest.raises(ModelTooLargeError, match="single text"):
        halved(8, {HALVINGS: 4}, "text")
