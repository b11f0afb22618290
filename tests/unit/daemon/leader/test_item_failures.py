"""An item whose worker runs out of memory: done with half as much at a time, never as it was."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.base.work_item import HALVINGS, Phase, WorkItem, WorkResult
from jupiterd.daemon.leader import work_item
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.work_item import MAX_FAILURES, ItemRunner
from jupiterd.daemon.runtime.work_events import Finished, WorkEvent, WorkOrder
from jupiterd.errors import (
    ModelTooLargeError,
    OutOfMemoryError,
    PeerUnreachableError,
    WorkFailedError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.workers.memory_room import halved
from tests.support.cluster.building import CYCLE
from tests.support.daemon.term_parts import (
    FakeCalls,
    FakeMachines,
    FakePlacement,
    FakeTerm,
    services_of,
)

BEGINS_WITH = 64
MODEL = {"model": ArtifactId("a1" * 32)}


BOX = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30)


class Cluster:
    """Nodes whose workers are killed for memory above so many at a time."""

    def __init__(self, rooms: Mapping[str, int], faults: Sequence[str] = ()) -> None:
        self.rooms, self.tries = dict(rooms), list[tuple[str, int]]()
        self.faults = faults
        self.without_engine = frozenset[str]()
        self.away = Counter[str]()
        """How often each is asked for in vain."""
        self.is_busy: Callable[[NodeId], bool] = lambda _: False

    async def work(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        if self.faults:
            self.tries.append((node, BEGINS_WITH))
            raise WorkFailedError(self.faults[len(self.tries) - 1])
        size = (
            BEGINS_WITH if "server" in order.params else halved(BEGINS_WITH, order.params, "prompt")
        )
        self.tries.append((node, size))
        if size > self.rooms[node]:
            raise OutOfMemoryError("the worker was killed")
        yield Finished(WorkResult({}, {}, {}))

    def place(self, *, needs_engine: bool, without: frozenset[NodeId] = frozenset()) -> NodeId:
        excluded = without | (self.without_engine if needs_engine else frozenset())
        for name in self.rooms:
            if name in excluded:
                continue
            if not self.away[name]:
                return NodeId(name)
            self.away[name] -= 1
        raise PeerUnreachableError("nobody is here")

    def machine(self, node: NodeId) -> Hardware:
        return replace(BOX, engines=() if node in self.without_engine else ("torch",))

    @property
    def runner(self) -> ItemRunner:
        term, machines = FakeTerm(), FakeMachines()
        term.know(CYCLE)
        machines.hardware_of = self.machine
        places, calls = Places(self, machines), FakeCalls(self.work)
        return ItemRunner(services_of(term, placement=places, calls=calls), CYCLE)

    async def run(self, task: str = "generate", params: Mapping[str, Any] | None = None) -> None:
        item = WorkItem("r1/generate/0", Phase.GENERATE, task, params or {}, MODEL)
        await self.runner.run(1, item)


class Places(FakePlacement):
    """A cluster's nodes, which take turns as it says."""

    def __init__(self, cluster: Cluster, machines: Machines) -> None:
        super().__init__(machines)
        self._cluster = cluster

    def fit_workers(self) -> list[NodeId]:
        return [NodeId(name) for name in self._cluster.rooms]

    def is_busy(self, node: NodeId) -> bool:
        return self._cluster.is_busy(node)

    def place(self, *, needs_engine: bool, without: frozenset[NodeId] = frozenset()) -> NodeId:
        return self._cluster.place(needs_engine=needs_engine, without=without)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: float) -> None: ...

    monkeypatch.setattr(work_item.asyncio, "sleep", at_once)


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
async def test_what_can_not_be_halved_is_tried_on_each_node_and_once_more_and_ends_in_words(
    task: str, params: Mapping[str, Any]
) -> None:
    cluster = Cluster({"one": 0, "two": 0})
    with pytest.raises(OutOfMemoryError, match="the worker was killed") as caught:
        await cluster.run(task, params)
    assert [node for node, _ in cluster.tries] == ["one", "two", "one"]
    assert "it isn't tried again as it was" in caught.value.hint


async def test_a_lone_machine_tries_once_more_when_its_other_work_has_ended() -> None:
    cluster, looks = Cluster({"one": 0}), iter([True, True, False])

    def is_busy(_: NodeId) -> bool:
        assert len(cluster.tries) == 1
        if found := next(looks):
            return found
        cluster.rooms["one"] = BEGINS_WITH
        return False

    cluster.is_busy = is_busy
    await cluster.run("pack")
    assert len(cluster.tries) == 2
    assert list(looks) == []


async def test_work_that_never_ends_does_not_put_off_the_last_try_for_ever() -> None:
    cluster = Cluster({"one": 0})
    cluster.is_busy = lambda _: True
    with pytest.raises(OutOfMemoryError):
        await cluster.run("pack")
    assert len(cluster.tries) == 2


@pytest.mark.parametrize(("task", "last"), [("pack", 64), ("generate", 4)])
async def test_while_a_larger_machine_is_away_a_smaller_one_does_not_get_it_again(
    task: str, last: int
) -> None:
    cluster = Cluster({"one": 0, "two": last})
    cluster.away["two"] = 40
    await cluster.run(task)
    assert cluster.tries[-1] == ("two", last)
    assert len(set(cluster.tries)) == len(cluster.tries)


async def test_it_is_said_for_whom_it_waits() -> None:
    cluster = Cluster({"one": 0, "two": 64})
    cluster.away["two"] = 2
    item = WorkItem("r1/pack/0", Phase.PACK, "pack", {}, {})
    with pytest.raises(PeerUnreachableError, match="memory ran out on one, and nobody else"):
        cluster.runner._place(item, frozenset(), frozenset({NodeId("one")}))


async def test_nobody_waits_for_a_machine_that_can_not_do_it() -> None:
    cluster = Cluster({"one": 0, "two": 64})
    cluster.without_engine = frozenset({"two"})
    with pytest.raises(ModelTooLargeError):
        await cluster.run("generate")
    assert {node for node, _ in cluster.tries} == {"one"}


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
