"""What a node with little room gives up, and what never."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from jupiterd.cluster.artifacts.replication_policy import LITTLE_BYTES, in_work
from jupiterd.cluster.facts.facts import CycleStateSet
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.artifacts.disk_pressure import UNUSED_S, DiskPressure
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, checkpoint, data_asked, training
from tests.unit.daemon.artifacts.test_artifact_cache import taken_in, three
from tests.unit.daemon.leader.test_artifact_reach import have

pytestmark = pytest.mark.net


def little_room_of(node: Node) -> DiskPressure:
    others = node.artifact_cache._alive() - {node.identity.node_id}
    return DiskPressure(node.replica, node.artifact_cache, lambda: others)


def unused(node: Node, artifact: ArtifactId) -> None:
    at_s = wall_s() - UNUSED_S - 60
    os.utime(node.artifact_cache.store.path(artifact).parent, (at_s, at_s))


async def test_a_node_with_little_room_gives_up_what_two_others_have_and_no_work_needs(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as nodes:
        one, *others = nodes
        everywhere, with_one, young, needed = (taken_in(one, tmp_path)[0] for _ in range(4))
        for node in others:
            for artifact in (everywhere, young, needed):
                await node.artifact_cache.ensure(artifact)
        await others[0].artifact_cache.ensure(with_one)
        for artifact in (everywhere, with_one, needed):
            unused(one, artifact)
        facts = (data_asked(), training(), checkpoint(everywhere), checkpoint(needed))
        await one.replica.append(1, [*facts])
        stopped = CycleStateSet(CYCLE, "stopped", "enough", 1)
        store, little_room = one.artifact_cache.store, little_room_of(one)
        for node in nodes:
            have(node, LITTLE_BYTES)
        held = set(store.ids())
        await one.replica.append(1, [stopped])
        await little_room.look(wall_s())
        assert set(store.ids()) == held  # there is room
        have(one, LITTLE_BYTES - 1)
        await one.replica.append(1, [CycleStateSet(CYCLE, "running", "", 2)])
        await little_room.look(wall_s())
        assert set(store.ids()) == held  # the run goes on
        have(others[0], LITTLE_BYTES - 1)
        await one.replica.append(1, [CycleStateSet(CYCLE, "stopped", "", 3)])
        await little_room.look(wall_s())
        assert set(store.ids()) == held  # one of the others may give it up just now, too
        have(others[0], LITTLE_BYTES)
        await little_room.look(wall_s())
        assert held - set(store.ids()) == {everywhere, needed}
        assert all(node.artifact_cache.store.holds(everywhere) for node in others)


async def test_what_work_needs_is_read_again_only_once_the_ledger_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with three(tmp_path) as nodes:
        one, *others = nodes
        first, *going = sorted(taken_in(one, tmp_path)[0] for _ in range(4))
        for artifact in (first, *going):
            for node in others:
                await node.artifact_cache.ensure(artifact)
            unused(one, artifact)
        for node in nodes:
            have(node, LITTLE_BYTES - (node is one))
        await one.replica.append(1, [data_asked(), training()])
        little_room, reads = little_room_of(one), 0
        remove = little_room._remove

        def counted(cycles: Iterable[CycleState]) -> frozenset[str]:
            nonlocal reads
            reads += 1
            return in_work(cycles)

        async def remove_and_name_another(artifact: ArtifactId, before_s: float) -> None:
            await remove(artifact, before_s)
            if artifact == first:
                await one.replica.append(1, [checkpoint(going[0])])

        monkeypatch.setattr("jupiterd.daemon.artifacts.disk_pressure.in_work", counted)
        monkeypatch.setattr(little_room, "_remove", remove_and_name_another)
        await little_room.look(wall_s())
        held = set(one.artifact_cache.store.ids())
        assert held & {first, *going} == {going[0]}
        assert reads == 2
