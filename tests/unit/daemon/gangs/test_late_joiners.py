"""Members that lack the state of their gang: who they are, and how they get it as it trains."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.planning.engines import MLX, EngineChoice
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor import deferred_inputs
from jupiterd.daemon.gangs.late_joiners import LateJoiners, turned
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.protocol.frames import InputArrived
from tests.support.daemon.two_nodes import lead, serving, unite

A, B, C = map(NodeId, ("a" * 32, "b" * 32, "c" * 32))


def gang_plan(*gang: NodeId, state: str = "", step: int = 20) -> GangPlan:
    return GangPlan(
        3, EngineChoice(MLX, gang, "as asked"), state, step, 0.0, tuple(range(len(gang)))
    )


def test_a_ring_that_begins_elsewhere_keeps_its_neighbours() -> None:
    before = gang_plan(A, A, B, C)
    after = turned(before, B)
    assert after.gang == (B, C, A, A)
    assert after.micro_batches == (2, 3, 0, 1)
    assert replace(after, late=frozenset({A})).late_ranks == (2, 3)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncGenerator[tuple[Node, Node]]:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(serving(tmp_path, name)) for name in "ab"]
        await unite(*nodes)
        await lead(nodes[0])
        everybody = frozenset(node.identity.node_id for node in nodes)
        nodes[1].artifact_cache._alive = lambda: everybody  # nobody beats here
        yield nodes[0], nodes[1]


def state_of(node: Node) -> ArtifactId:
    folder = node.state_dir.spool / "state"
    folder.mkdir()
    (folder / "weights").write_bytes(b"\1\2\3" * 1000)
    return node.artifact_cache.store.ingest(folder)


async def test_who_lacks_the_state_is_late_and_another_is_first(two: tuple[Node, Node]) -> None:
    leader, other = two
    own, newcomer = leader.identity.node_id, other.identity.node_id
    state = state_of(leader)
    planned = gang_plan(newcomer, own, state=state)
    begun = await LateJoiners(leading_of(leader).term, leading_of(leader).reach).named(planned)
    assert (begun.gang, begun.late, begun.late_ranks) == ((own, newcomer), {newcomer}, (1,))

    await other.artifact_cache.ensure(state)
    assert (
        await LateJoiners(leading_of(leader).term, leading_of(leader).reach).named(planned)
        == planned
    )


async def test_whose_state_was_too_slow_once_gets_it_before_the_gang_is_formed(
    two: tuple[Node, Node],
) -> None:
    leader, other = two
    own, newcomer = leader.identity.node_id, other.identity.node_id
    late = LateJoiners(leading_of(leader).term, leading_of(leader).reach)
    planned = gang_plan(newcomer, own, state=state_of(leader))
    assert (await late.named(planned)).late == {newcomer}
    late.were_too_slow({newcomer})
    assert await late.named(planned) == planned


async def test_nobody_is_late_where_a_round_begins_or_nobody_has_the_state(
    two: tuple[Node, Node],
) -> None:
    leader, other = two
    own, newcomer = leader.identity.node_id, other.identity.node_id
    first = gang_plan(newcomer, own, state=state_of(leader), step=0)
    assert (
        await LateJoiners(leading_of(leader).term, leading_of(leader).reach).named(first) == first
    )
    unknown = gang_plan(newcomer, own, state="f" * 64)
    assert (
        await LateJoiners(leading_of(leader).term, leading_of(leader).reach).named(unknown)
        == unknown
    )


async def test_a_late_input_is_fetched_from_a_peer_and_handed_in(two: tuple[Node, Node]) -> None:
    leader, other = two
    state = state_of(leader)
    order = WorkOrder(
        "c/r1/train/3/1", 1, "train", {deferred_inputs.PARAM: ["checkpoint"]},
        {"checkpoint": state, "shards": ArtifactId("s")}, 3,
    )  # fmt: skip
    assert deferred_inputs.without(order) == {"shards": "s"}
    handed: list[InputArrived] = []
    async with asyncio.timeout(10):
        await deferred_inputs.bring(other.artifact_cache, order, handed.append)
    assert handed == [InputArrived("checkpoint", str(other.artifact_cache.store.path(state)))]
    assert (Path(handed[0].path) / "weights").read_bytes() == b"\1\2\3" * 1000


async def test_an_input_that_nobody_has_is_told_as_one_that_will_not_come(
    two: tuple[Node, Node],
) -> None:
    order = WorkOrder(
        "c/r1/train/3/1", 1, "train", {deferred_inputs.PARAM: ["checkpoint"]},
        {"checkpoint": ArtifactId("f" * 64)}, 3,
    )  # fmt: skip
    handed: list[InputArrived] = []
    await deferred_inputs.bring(two[1].artifact_cache, order, handed.append)
    assert [(arrived.name, arrived.path) for arrived in handed] == [("checkpoint", "")]
    assert "no node that can be reached holds artifact" in handed[0].reason


def leading_of(node: Node) -> TermServices:
    assert node.leading is not None
    return node.leading
