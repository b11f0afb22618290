"""Who is drained gets no work, leaves the gang that trains, and what needs it says so and waits."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import RolePinned
from jupiterd.cluster.training.scale_policy import ScalePolicy
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.gangs import gang_rescaling
from jupiterd.daemon.gangs.gang_reachability import GangReachability
from jupiterd.daemon.gangs.gang_rescaling import RescalingPlan, allow_rescaling
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.daemon.planning.gang_plan import choose, trainers
from jupiterd.errors import DrainedError, NotFoundError, PeerUnreachableError
from jupiterd.ids import NodeId
from tests.support.cluster.building import CYCLE, started
from tests.support.daemon.one_rank import LAUNCH, A, B
from tests.support.daemon.term_parts import FakeCalls, FakeMachines, FakeTerm, connected
from tests.support.daemon.two_nodes import lead, serving, take_for_alive, unite

WITH_TORCH = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, engines=("torch",))
ITEM = WorkItem(Phase.GENERATE, "generate/0", "generate", {"prompt": "x"}, {"model": "m"})


async def leading_of(one: Node, other: Node) -> TermServices:
    """Return the term of the first of two, both of which could train."""
    await unite(one, other)
    await one.replica.append(1, [started()])
    await lead(one)
    assert one.leading is not None
    take_for_alive(one, other)
    one.leading.machines.alive = one.leading.machines.answering = one.alive
    one.leading.machines.hardware_of = lambda _: WITH_TORCH
    return one.leading


async def drain(leading: TermServices, *nodes: Node) -> None:
    await leading.term.record(*(RolePinned(node.identity.node_id, "idle", 1) for node in nodes))


async def test_who_is_drained_gets_no_item_and_trains_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        leading = await leading_of(one, two)
        own, other = one.identity.node_id, two.identity.node_id
        assert {seat.node for seat in leading.placement.seats()} == {own, other}
        await drain(leading, two)
        leading.placement._running[own] = 5
        assert leading.placement.place(needs_engine=False) == own, (
            "though the other one has nothing to do"
        )
        assert (leading.placement.is_busy(own), leading.placement.is_busy(other)) == (True, False)
        assert trainers(leading.placement).keys() == {own}
        assert trainers(leading.placement, (own, other)).keys() == {own}, "whoever was named"
        assert other in leading.machines.fit_nodes(), "it stays a member, and gives what it holds"


async def test_where_all_are_drained_it_is_said_how_it_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        leading = await leading_of(one, two)
        await drain(leading, one, two)
        told = "are drained, and nobody else can train; to let it go on: jupiterctl node resume "
        with pytest.raises(DrainedError, match=told) as refused:
            choose(leading.placement, leading.term.cycle(CYCLE), max_ranks=8)
        assert refused.value.may_mend, "a cycle waits for it, and doesn't fail"
        with pytest.raises(DrainedError, match="nobody else can do it"):
            ItemRunner(leading, CYCLE)._place(ITEM, frozenset())
        name = one.settings.name
        with pytest.raises(DrainedError, match=f"{name} is drained"):
            ItemRunner(leading, CYCLE)._named(one.identity.node_id)


async def test_a_machine_without_an_engine_is_not_what_training_waits_for(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        leading = await leading_of(one, two)
        leading.machines.hardware_of = lambda _: replace(WITH_TORCH, engines=())
        await drain(leading, one, two)
        with pytest.raises(PeerUnreachableError, match="no node that is alive can train"):
            choose(leading.placement, leading.term.cycle(CYCLE), max_ranks=8)


async def test_the_command_says_how_many_are_left_to_work(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await leading_of(one, two)
        for name, left in (("two", 1), ("one", 0)):
            done = await one.commands.execute_here("node.role", {"node": name, "role": "idle"})
            assert done["workers_left"] == left


class Gang(FakeCalls):
    """As much of a term as stopping a gang takes: who is asked to, and what is told meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.drained: set[NodeId] = set()
        self.stragglers: dict[NodeId, str] = {}
        self.stops: list[NodeId] = []
        self.told: list[str] = []
        self.is_deaf = False
        self.stopped = asyncio.Event()

    async def stop_after_step(self, node: NodeId, attempt: int) -> None:
        self.stops.append(node)
        if self.is_deaf:
            self.is_deaf = False
            raise NotFoundError("no rank of attempt 3 runs here just now")
        self.stopped.set()

    async def until_stopped(self, eligible: frozenset[NodeId] = frozenset({A, B})) -> None:
        """Follow the gang until it is told to stop."""

        async def bring(newcomers: frozenset[NodeId]) -> frozenset[NodeId]:
            return newcomers

        changes = RescalingPlan(
            CYCLE,
            lambda: eligible,
            lambda: self.drained & {*LAUNCH.gang},
            lambda: self.stragglers,
            bring,
            str,
            self.told.append,
            lambda: self.told.append("goes on"),
            lambda: self.told.append("stops"),
        )
        reach = GangReachability(FakeMachines(), connected(), ScalePolicy(), str)
        async with asyncio.timeout(10.0), allow_rescaling(FakeTerm(), self, LAUNCH, reach, changes):
            await self.stopped.wait()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: object) -> None: ...

    monkeypatch.setattr(gang_rescaling, "LOOK_S", 0.01)
    monkeypatch.setattr(gang_rescaling, "close_strays", none)


@pytest.mark.parametrize(("leaver", "named"), [(B, "b"), (A, "a")])
async def test_a_member_that_is_drained_leaves_after_the_running_step(
    leaver: NodeId, named: str
) -> None:
    gang = Gang()
    gang.drained = {leaver, NodeId("of no gang")}
    await gang.until_stopped()
    assert gang.stops == [A], "rank 0 tells the others"
    assert gang.told == [f"{named} is drained", "stops"]


async def test_a_gang_that_cant_be_told_yet_is_told_at_the_next_look() -> None:
    gang = Gang()
    gang.drained, gang.is_deaf = {B}, True
    await gang.until_stopped()
    assert gang.told == ["b is drained", "goes on", "b is drained", "stops"]


async def test_a_member_that_slows_the_others_leaves_after_the_running_step() -> None:
    gang = Gang()
    gang.stragglers = {B: "a step takes half the time without it"}
    await gang.until_stopped()
    assert gang.told == ["b is let go of; a step takes half the time without it", "stops"]
