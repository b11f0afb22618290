"""Where the second copy of what was just made goes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.cluster.artifacts import replication_policy
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.leader import artifact_reach
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import DiskFullError
from jupiterd.ids import ArtifactId, NodeId
from tests.support.daemon.two_nodes import lead
from tests.unit.daemon.artifacts.test_artifact_cache import taken_in, three

pytestmark = pytest.mark.net

Three = tuple[Node, Node, Node]


@asynccontextmanager
async def led_by_the_first(folder: Path) -> AsyncGenerator[tuple[Three, TermServices]]:
    """Three nodes with room enough; the first one leads."""
    async with three(folder) as nodes:
        for node in nodes:
            have(node, replication_policy.LITTLE_BYTES)
        await lead(nodes[0])
        leading = nodes[0].leading
        assert leading is not None
        leading.machines.answering = nodes[0].artifact_cache._alive
        yield nodes, leading


def have(node: Node, free_bytes: int) -> None:
    node.artifact_cache.store.free_bytes = lambda: free_bytes


def holding(nodes: Three, artifact: ArtifactId) -> list[bool]:
    return [node.artifact_cache.store.holds(artifact) for node in nodes]


async def test_the_leader_takes_what_another_one_has_made(tmp_path: Path) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        artifact, _ = taken_in(nodes[1], tmp_path)
        await leading.reach.keep_two_copies(artifact, nodes[1].identity.node_id)
        assert holding(nodes, artifact) == [True, True, False]


@pytest.mark.parametrize("little", [1, 2])
async def test_what_the_leader_has_made_goes_to_who_has_room(tmp_path: Path, little: int) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        have(nodes[little], replication_policy.LITTLE_BYTES - 1)
        artifact, _ = taken_in(nodes[0], tmp_path)
        await leading.reach.keep_two_copies(artifact, leading.term.self_id)
        assert holding(nodes, artifact) == [True, little != 1, little != 2]


async def test_a_leader_with_little_room_lets_another_take_it(tmp_path: Path) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        have(nodes[0], replication_policy.LITTLE_BYTES - 1)
        artifact, _ = taken_in(nodes[1], tmp_path)
        await leading.reach.keep_two_copies(artifact, nodes[1].identity.node_id)
        assert holding(nodes, artifact) == [False, True, True]


async def test_where_nobody_has_room_it_lies_on_two_nodes_all_the_same(tmp_path: Path) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        for node in nodes:
            have(node, replication_policy.LITTLE_BYTES - 1)
        others, own = taken_in(nodes[1], tmp_path)[0], taken_in(nodes[0], tmp_path)[0]
        await leading.reach.keep_two_copies(others, nodes[1].identity.node_id)
        assert holding(nodes, others) == [True, True, False]
        await leading.reach.keep_two_copies(own, leading.term.self_id)
        assert sum(holding(nodes, own)) == 2


async def test_who_refuses_is_passed_over(tmp_path: Path) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        have(nodes[1], 2 * replication_policy.LITTLE_BYTES)  # so it is asked first

        async def full(_artifact: ArtifactId) -> Path:
            raise DiskFullError("no room left")

        nodes[1].artifact_cache.ensure = full
        artifact, _ = taken_in(nodes[0], tmp_path)
        await leading.reach.keep_two_copies(artifact, leading.term.self_id)
        assert holding(nodes, artifact) == [True, False, True]


def never_done(leading: TermServices, monkeypatch: pytest.MonkeyPatch, times: int) -> list[NodeId]:
    """Let so many copies be still under way when they are waited for no more; note who is asked."""
    asked: list[NodeId] = []
    copy_to = leading.reach.artifact_cache.copy_to

    async def late(node: NodeId, artifact: ArtifactId) -> bool | None:
        asked.append(node)
        return None if len(asked) <= times else await copy_to(node, artifact)

    monkeypatch.setattr(leading.reach.artifact_cache, "copy_to", late)
    return asked


async def test_who_is_not_done_in_time_is_waited_for_where_the_leader_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        have(nodes[0], replication_policy.LITTLE_BYTES - 1)
        asked = never_done(leading, monkeypatch, 2)
        artifact, _ = taken_in(nodes[1], tmp_path)
        await leading.reach.keep_two_copies(artifact, nodes[1].identity.node_id)
        assert holding(nodes, artifact) == [False, True, True]
        assert asked == [nodes[2].identity.node_id] * 3


async def test_who_is_never_done_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        have(nodes[0], replication_policy.LITTLE_BYTES - 1)
        asked = never_done(leading, monkeypatch, artifact_reach.MOST_ASKED)
        artifact, _ = taken_in(nodes[1], tmp_path)
        await leading.reach.keep_two_copies(artifact, nodes[1].identity.node_id)
        assert holding(nodes, artifact) == [True, True, False]
        assert len(asked) == artifact_reach.MOST_ASKED


async def test_a_leader_that_has_it_itself_waits_for_nobody_who_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        asked = never_done(leading, monkeypatch, 1)
        artifact, _ = taken_in(nodes[0], tmp_path)
        await leading.reach.keep_two_copies(artifact, leading.term.self_id)
        assert holding(nodes, artifact) == [True, False, False]
        assert len(asked) == 1
