"""Second copies, when a holder has gone."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.cluster.artifacts import replication_policy
from jupiterd.cluster.facts.facts import PairingWindowLocked
from jupiterd.cluster.ledger.island_runs import Cycles
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.artifacts import artifact_cache, artifact_service
from jupiterd.daemon.leader import artifact_reach
from jupiterd.daemon.leader.re_replication import REFUSED_S, ReReplication
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import DiskFullError
from jupiterd.ids import ArtifactId, NodeId
from tests.support.cluster.building import checkpoint, data_asked, pinned, training
from tests.support.daemon.two_nodes import lead
from tests.unit.daemon.artifacts.test_artifact_cache import taken_in, three

pytestmark = pytest.mark.net


async def test_what_one_node_alone_has_is_copied_to_another_and_then_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
    async with three(tmp_path) as nodes:
        one, *others = nodes
        artifact, _ = taken_in(one, tmp_path)
        stray = tmp_path / "stray"
        stray.write_text("named by nobody")
        unnamed = one.artifact_cache.store.ingest(stray)
        await lead(one)
        leading = one.leading
        assert leading is not None
        leading.machines.answering = one.artifact_cache._alive
        # The door is shut as a leader records it, or it would make up for it between two looks.
        begun = [data_asked(), training(), PairingWindowLocked(())]
        await one.replica.append(1, [*begun, checkpoint(artifact)])
        upkeep = watching(one)
        upkeep._alive = one.artifact_cache._alive()
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        (second,) = [node for node in others if node.artifact_cache.store.holds(artifact)]
        assert not any(node.artifact_cache.store.holds(unnamed) for node in others)
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)  # all is well
        asked: list[object] = []
        monkeypatch.setattr(one.artifact_cache, "held_by", asked.append)
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        assert asked == []
        monkeypatch.undo()
        monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
        one.artifact_cache.store.remove(artifact)  # as if its machine had gone
        upkeep._alive = frozenset(node.identity.node_id for node in (one, *others[:1], *others[1:]))
        upkeep._seen = None
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        assert sum(node.artifact_cache.store.holds(artifact) for node in nodes) == 2
        assert second.artifact_cache.store.holds(artifact)


def watching(node: Node) -> ReReplication:
    return ReReplication(node.heartbeats.alive, lambda: node.leading)


@asynccontextmanager
async def led_by_the_first_with_a_checkpoint(
    folder: Path,
) -> AsyncGenerator[tuple[tuple[Node, Node, Node], TermServices, ArtifactId]]:
    async with three(folder) as nodes:
        one = nodes[0]
        artifact, _ = taken_in(one, folder)
        await lead(one)
        leading = one.leading
        assert leading is not None
        leading.machines.answering = one.artifact_cache._alive
        # As a leader records it, or it would make up for it while a test looks.
        begun = [data_asked(), training(), PairingWindowLocked(())]
        await one.replica.append(1, [*begun, checkpoint(artifact)])
        yield nodes, leading, artifact


def holders(nodes: tuple[Node, ...], artifact: ArtifactId) -> int:
    return sum(node.artifact_cache.store.holds(artifact) for node in nodes)


class Full:
    """A node's wish to fetch nothing, for as long as its disk is full."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.is_full, self.asked = True, 0
        for node in nodes:
            self._fill(node)

    def _fill(self, node: Node) -> None:
        ensure = node.artifact_cache.ensure

        async def ensure_unless_full(artifact: ArtifactId) -> Path:
            self.asked += 1
            if self.is_full:
                raise DiskFullError("no room left")
            return await ensure(artifact)

        node.artifact_cache.ensure = ensure_unless_full


async def test_who_refused_is_asked_again_after_an_hour_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
    async with led_by_the_first_with_a_checkpoint(tmp_path) as (nodes, leading, artifact):
        upkeep, others = watching(nodes[0]), Full(nodes[1:])
        upkeep._alive = nodes[0].artifact_cache._alive()
        for _ in range(4):
            await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        assert (others.asked, holders(nodes, artifact)) == (2, 1)
        others.is_full = False
        await upkeep.look(leading.term, leading.machines, leading.reach, REFUSED_S - 1)
        assert others.asked == 2
        await upkeep.look(leading.term, leading.machines, leading.reach, REFUSED_S)
        assert holders(nodes, artifact) == 2


async def test_what_is_to_be_copied_is_worked_out_again_only_once_the_ledger_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
    times = 0

    def counted(cycles: Cycles) -> frozenset[ArtifactId]:
        nonlocal times
        times += 1
        return replication_policy.of_record(cycles)

    monkeypatch.setattr("jupiterd.daemon.leader.re_replication.of_record", counted)
    async with led_by_the_first_with_a_checkpoint(tmp_path) as (nodes, leading, artifact):
        upkeep, others = watching(nodes[0]), Full(nodes[1:])
        upkeep._alive = nodes[0].artifact_cache._alive()
        for _ in range(3):
            await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        assert (others.asked, times) == (2, 1)
        await nodes[0].replica.append(1, [pinned(artifact)])
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        assert times == 2


async def test_who_refused_is_asked_again_once_others_are_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
    async with led_by_the_first_with_a_checkpoint(tmp_path) as (nodes, leading, artifact):
        upkeep, others = watching(nodes[0]), Full(nodes[1:])
        upkeep._alive = nodes[0].artifact_cache._alive()
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        others.is_full = False
        upkeep._refused = dict.fromkeys(
            (replication_policy.Copy(artifact, node.identity.node_id) for node in nodes[1:]), 0.0
        )
        upkeep._alive |= {NodeId("somebody who came")}
        await upkeep.look(leading.term, leading.machines, leading.reach, 1.0)
        assert holders(nodes, artifact) == 2


async def test_a_copy_that_takes_longer_than_one_call_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
    async with led_by_the_first_with_a_checkpoint(tmp_path) as (nodes, leading, artifact):
        upkeep = watching(nodes[0])
        upkeep._alive = nodes[0].artifact_cache._alive()
        store = nodes[0].artifact_cache.store
        monkeypatch.setattr(artifact_cache, "COPY_TIMEOUT_S", 0.2)
        for node in nodes[1:]:
            monkeypatch.setattr(node.artifact_cache, "replicate", never)
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        monkeypatch.undo()
        monkeypatch.setattr(replication_policy, "LITTLE_BYTES", 1)
        await upkeep.look(leading.term, leading.machines, leading.reach, 1.0)
        assert holders(nodes, artifact) == 2
        assert store.holds(artifact)


async def never(_artifact: ArtifactId, _asker: NodeId) -> None:
    await asyncio.Event().wait()


async def test_a_node_says_what_it_has_of_more_than_one_call_can_ask_for(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, _):
        held = taken_in(two, tmp_path)[0]
        unknown = [ArtifactId(f"{number:064x}") for number in range(artifact_service.MAX_IDS)]
        told = await one.artifact_cache.held_by(two.identity.node_id, [*unknown, held])
        assert told is not None
        assert told[1] == {held}


async def test_who_answers_slowly_is_not_taken_for_one_that_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was just made is waited for: upkeep asks for thousands, and has time."""
    async with led_by_the_first_with_a_checkpoint(tmp_path) as (nodes, leading, artifact):
        one, waits_s = nodes[0], list[float]()
        held_by = one.artifact_cache.held_by

        async def noted(
            node: NodeId,
            artifacts: Sequence[ArtifactId],
            timeout_s: float = artifact_cache.ASK_TIMEOUT_S,
        ) -> tuple[NodeId, frozenset[ArtifactId], int] | None:
            waits_s.append(timeout_s)
            return await held_by(node, artifacts, timeout_s)

        monkeypatch.setattr(one.artifact_cache, "held_by", noted)
        upkeep = watching(one)
        upkeep._alive = one.artifact_cache._alive()
        await upkeep.look(leading.term, leading.machines, leading.reach, 0.0)
        assert waits_s == [artifact_cache.ASK_TIMEOUT_S] * 3
        await leading.reach.keep_two_copies(artifact, leading.term.self_id)
        assert waits_s[3:] == [artifact_reach.ANSWER_S] * 2
