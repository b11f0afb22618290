"""Damaged checkpoints: found out, thrown away, fetched again, or set aside with their line."""

from pathlib import Path

import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_checkpoint, whole_start
from jupiterd.daemon.cycles.branch_suspension import resume_found
from jupiterd.daemon.gangs.damaged_checkpoints import suspend_damaged
from jupiterd.errors import CorruptCheckpointError, CorruptWeightsError
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore
from tests.support.cluster.building import CYCLE, checkpoint, data_asked, training
from tests.support.daemon.two_nodes import serving, unite
from tests.unit.daemon.commands.test_train_commands import MADE, leads

WEIGHTS = bytes(range(256)) * 64


def made(node: Node, spool: Path) -> ArtifactId:
    return made_in(node.artifact_cache.store, spool)


def made_in(store: ArtifactStore, spool: Path) -> ArtifactId:
    folder = spool / "checkpoint"
    (folder / "training_state").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "training_state" / "state.json").write_text("{}")
    return store.ingest(folder)


def weights_of(node: Node, artifact: ArtifactId) -> Path:
    return node.artifact_cache.store.path(artifact) / "model.safetensors"


def damage(node: Node, artifact: ArtifactId) -> None:
    """Change one byte, as a disk does that forgets: neither size nor name tells it."""
    path = weights_of(node, artifact)
    path.chmod(0o644)
    changed = bytearray(path.read_bytes())
    changed[100] ^= 1
    path.write_bytes(changed)


async def test_a_damaged_copy_is_thrown_away_and_fetched_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        artifact = made(one, tmp_path)
        for node in (one, two):
            node.artifact_cache._alive = lambda: frozenset(
                {one.identity.node_id, two.identity.node_id}
            )
        await two.artifact_cache.ensure(artifact)
        damage(one, artifact)
        await whole_checkpoint(one.artifact_cache, artifact)
        assert weights_of(one, artifact).read_bytes() == WEIGHTS


async def test_where_every_copy_is_damaged_that_is_said(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        artifact = made(one, tmp_path)
        for node in (one, two):
            node.artifact_cache._alive = lambda: frozenset(
                {one.identity.node_id, two.identity.node_id}
            )
        await two.artifact_cache.ensure(artifact)
        damage(one, artifact)
        damage(two, artifact)
        for node in (one, two):
            with pytest.raises(CorruptCheckpointError, match=r"damaged \(model.safetensors\)"):
                await whole_checkpoint(node.artifact_cache, artifact)
            assert not node.artifact_cache.store.holds(artifact)


@pytest.mark.parametrize("name", ["model.safetensors", "training_state/state.json"])
async def test_a_copy_that_lacks_a_file_or_a_part_of_one_is_damaged(
    tmp_path: Path, name: str
) -> None:
    async with serving(tmp_path, "one") as one:
        for how in ("gone", "cut short"):
            artifact = made(one, tmp_path)
            await whole_checkpoint(one.artifact_cache, artifact)
            path = one.artifact_cache.store.path(artifact) / name
            path.chmod(0o644)
            path.unlink() if how == "gone" else path.write_bytes(path.read_bytes()[:-1])
            one.artifact_cache.known_whole.clear()
            with pytest.raises(CorruptCheckpointError, match="is damaged"):
                await whole_checkpoint(one.artifact_cache, artifact)


async def test_damaged_weights_to_begin_with_end_a_run_and_a_checkpoint_does_not(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        for name, error in (
            ("weights", CorruptWeightsError),
            ("checkpoint", CorruptCheckpointError),
        ):
            artifact = made(one, tmp_path / name)
            damage(one, artifact)
            one.artifact_cache.known_whole.clear()
            with pytest.raises(error, match=r"damaged \(model.safetensors\)") as told:
                await whole_start(one.artifact_cache, {name: artifact, "shards": ArtifactId("s")})
            assert told.value.is_permanent is (name == "weights")
        assert await whole_start(one.artifact_cache, {"shards": ArtifactId("s")}) == {}


async def test_a_line_that_was_set_aside_stays_so_for_the_reign(tmp_path: Path) -> None:
    facts = (data_asked(), MADE, training(), checkpoint("a" * 64, tokens=100))
    async with leads(tmp_path, *facts) as leading:
        newest = made_in(leading_store := leading.reach.artifact_cache.store, tmp_path)
        await leading.term.record(checkpoint(newest, "a" * 64, tokens=200))
        run = leading.term.cycle(CYCLE)
        assert [fact.artifact for fact in run.canonical_branch()] == ["a" * 64, newest]
        await suspend_damaged(
            leading.term, leading.board, leading.reach, CYCLE, newest, "checkpoint b is damaged"
        )
        assert [fact.artifact for fact in run.canonical_branch()] == ["a" * 64]
        ((_, suspended),) = run.parkings()
        assert suspended.reason == "checkpoint b is damaged"
        assert leading_store.holds(ArtifactId(newest))
        await resume_found(leading.term, leading.board, leading.reach, CYCLE, run)
        assert newest in run.suspended, "it can be fetched, and can't be used"
        leading.reach.damaged.clear()
        await resume_found(leading.term, leading.board, leading.reach, CYCLE, run)
        assert newest not in run.suspended, "another leader tries it again"
