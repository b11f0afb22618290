"""Parts that ranks have written side by side become a checkpoint at the leader."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.leader.checkpoint_parts import CheckpointParts
from jupiterd.daemon.runtime.work_events import CheckpointStored
from jupiterd.errors import JupiterError, WorkFailedError
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.protocol.checkpoint_part import (
    DATA_FILE,
    DESCRIPTION_FILE,
    FILES_DIR,
    CheckpointPart,
    Extent,
)
from jupiterd.protocol.training_values import TrainingProgress
from tests.unit.daemon.leader.test_artifact_reach import Three, led_by_the_first

pytestmark = pytest.mark.net

FILE = "model.safetensors"
BYTES = b"0123456789"
BOUNDS = (0, 3, 3, 10)
"""Of the ranks' bytes; the second one has none."""

Made = list[tuple[NodeId, CheckpointStored]]


def part_of(node: Node, rank: int, step: int, folder: Path) -> CheckpointStored:
    """Have a node write a rank's part of a step."""
    place = folder / f"{step}-{rank}"
    place.mkdir()
    start, end = BOUNDS[rank], BOUNDS[rank + 1]
    extents = [Extent(FILE, start, end - start)] if end > start else []
    (place / DESCRIPTION_FILE).write_text(CheckpointPart(extents).to_text())
    (place / DATA_FILE).write_bytes(BYTES[start:end])
    if not rank:
        (place / FILES_DIR).mkdir()
        (place / FILES_DIR / "state.json").write_text(f"step {step}")
    else:  # parts of two steps are no equal artifacts
        (place / f"of-{rank}-{step}").write_text("")
    artifact = node.artifact_cache.store.ingest(place)
    return CheckpointStored(artifact, TrainingProgress(step, 10 * step, 0, 1.0, {}))


@asynccontextmanager
async def parts_of(folder: Path) -> AsyncGenerator[tuple[Three, CheckpointParts]]:
    async with led_by_the_first(folder) as (nodes, leading):
        yield nodes, CheckpointParts(leading.reach, leading.term.self_id, len(BOUNDS) - 1)


def add(parts: CheckpointParts, nodes: Three, ranks: range, step: int, folder: Path) -> None:
    for rank in ranks:
        node = nodes[rank]
        parts.add(rank, node.identity.node_id, part_of(node, rank, step, folder))


def read(nodes: Three, artifact: ArtifactId) -> tuple[bytes, str]:
    folder = nodes[0].artifact_cache.store.path(artifact)
    return (folder / FILE).read_bytes(), (folder / "state.json").read_text()


async def test_a_whole_set_becomes_a_checkpoint_with_the_leader(tmp_path: Path) -> None:
    made: Made = []
    async with parts_of(tmp_path) as (nodes, parts):
        async with parts.assembling(lambda node, stored: made.append((node, stored))):
            add(parts, nodes, range(3), 5, tmp_path)
        ((holder, stored),) = made
        assert holder == nodes[0].identity.node_id
        assert stored.progress.step == 5
        assert read(nodes, stored.artifact) == (BYTES, "step 5")


async def test_others_parts_stay_with_their_writers_alone(tmp_path: Path) -> None:
    made: Made = []
    async with parts_of(tmp_path) as (nodes, parts):
        theirs = part_of(nodes[2], 2, 5, tmp_path)
        async with parts.assembling(lambda node, stored: made.append((node, stored))):
            add(parts, nodes, range(2), 5, tmp_path)
            parts.add(2, nodes[2].identity.node_id, theirs)
        assert made
        holding = [node.artifact_cache.store.holds(theirs.artifact) for node in nodes]
        assert holding == [False, False, True]


async def test_of_several_sets_the_last_one_counts(tmp_path: Path) -> None:
    async with parts_of(tmp_path) as (nodes, parts):
        for step in (5, 6):
            add(parts, nodes, range(3), step, tmp_path)
        ((_, stored),) = await parts.rest()
        assert stored.progress.step == 6
        assert await parts.rest() == await parts.rest()


async def test_a_set_that_lacks_a_lost_ranks_part_is_no_checkpoint(tmp_path: Path) -> None:
    async with parts_of(tmp_path) as (nodes, parts):
        add(parts, nodes, range(3), 5, tmp_path)
        add(parts, nodes, range(2), 6, tmp_path)
        ((_, stored),) = await parts.rest()
        assert stored.progress.step == 5


async def test_a_part_that_is_gone_costs_its_step_alone(tmp_path: Path) -> None:
    made: Made = []
    async with parts_of(tmp_path) as (nodes, parts):
        lost = part_of(nodes[1], 1, 5, tmp_path)
        nodes[1].artifact_cache.store.remove(lost.artifact)
        async with parts.assembling(lambda node, stored: made.append((node, stored))):
            add(parts, nodes, range(1), 5, tmp_path)
            parts.add(1, nodes[1].identity.node_id, lost)
            add(parts, nodes, range(2, 3), 5, tmp_path)
            add(parts, nodes, range(3), 7, tmp_path)
        assert [stored.progress.step for _, stored in made] == [7]


async def test_of_a_set_that_cannot_be_made_nothing_stays_with_the_leader(tmp_path: Path) -> None:
    async with parts_of(tmp_path) as (nodes, parts):
        fetched, lost = (part_of(nodes[rank], rank, 5, tmp_path) for rank in (1, 2))
        nodes[2].artifact_cache.store.remove(lost.artifact)
        add(parts, nodes, range(1), 5, tmp_path)
        for rank, part in ((1, fetched), (2, lost)):
            parts.add(rank, nodes[rank].identity.node_id, part)
        assert await parts.rest() == []
        holding = [node.artifact_cache.store.holds(fetched.artifact) for node in nodes]
        assert holding == [False, True, False]


async def test_where_the_last_set_is_gone_the_one_before_it_counts(tmp_path: Path) -> None:
    async with parts_of(tmp_path) as (nodes, parts):
        add(parts, nodes, range(3), 5, tmp_path)
        lost = part_of(nodes[1], 1, 6, tmp_path)
        nodes[1].artifact_cache.store.remove(lost.artifact)
        add(parts, nodes, range(1), 6, tmp_path)
        parts.add(1, nodes[1].identity.node_id, lost)
        add(parts, nodes, range(2, 3), 6, tmp_path)
        ((_, stored),) = await parts.rest()
        assert stored.progress.step == 5


async def test_a_set_that_was_being_put_together_as_the_attempt_broke_off_counts(
    tmp_path: Path,
) -> None:
    async with parts_of(tmp_path) as (nodes, parts):
        add(parts, nodes, range(3), 5, tmp_path)
        with pytest.raises(ExceptionGroup):
            await broken_off(parts)
        ((_, stored),) = await parts.rest()
        assert stored.progress.step == 5


async def broken_off(parts: CheckpointParts) -> None:
    async with parts.assembling(lambda _node, _stored: None):
        await asyncio.sleep(0)  # it has begun by now
        raise WorkFailedError("a rank was killed")


async def test_an_attempt_whose_last_set_is_gone_ends_with_the_reason(tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []
    async with led_by_the_first(tmp_path) as (nodes, leading):
        parts = CheckpointParts(
            leading.reach, leading.term.self_id, 3, lambda *failure: told.append(failure)
        )
        lost = part_of(nodes[1], 1, 5, tmp_path)
        nodes[1].artifact_cache.store.remove(lost.artifact)
        add(parts, nodes, range(1), 5, tmp_path)
        parts.add(1, nodes[1].identity.node_id, lost)
        add(parts, nodes, range(2, 3), 5, tmp_path)
        with pytest.raises(ExceptionGroup) as group:
            await finished(parts)
        assert group.group_contains(JupiterError)
        assert [step for step, _ in told] == [5]


async def finished(parts: CheckpointParts) -> None:
    async with parts.assembling(lambda _node, _stored: None):
        pass


async def test_a_leader_that_takes_over_leaves_sets_that_are_recorded_as_they_are(
    tmp_path: Path,
) -> None:
    async with led_by_the_first(tmp_path) as (nodes, leading):
        parts = CheckpointParts(leading.reach, leading.term.self_id, 3, recorded_step=lambda: 6)
        for step in (5, 6):  # told again by ranks that one after another is followed
            add(parts, nodes, range(3), step, tmp_path)
        assert await parts.rest() == []
        add(parts, nodes, range(3), 7, tmp_path)
        ((_, stored),) = await parts.rest()
        assert stored.progress.step == 7
