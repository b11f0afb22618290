"""Artifacts among daemons: found, given on while they come, and mended."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.adapter_folder import base_beside
from jupiterd.cluster.artifacts.send_pace import BURST_S, SendPace
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import CorruptArtifactError
from jupiterd.ids import ArtifactId
from jupiterd.net.artifact_source import PeerArtifactSource
from jupiterd.store.disk_room import DiskRoom
from jupiterd.store.manifest import CHUNK_BYTES
from tests.support.daemon.two_nodes import serving, unite, until

pytestmark = pytest.mark.net

SIZE_BYTES = 6 * CHUNK_BYTES + 9


@asynccontextmanager
async def three(folder: Path) -> AsyncGenerator[tuple[Node, Node, Node]]:
    async with (
        serving(folder, "one") as one,
        serving(folder, "two") as two,
        serving(folder, "three") as third,
    ):
        nodes = (one, two, third)
        await unite(*nodes)
        everybody = frozenset(node.identity.node_id for node in nodes)
        for node in nodes:
            node.artifact_cache._alive = lambda: everybody
        yield nodes


def taken_in(node: Node, folder: Path) -> tuple[ArtifactId, bytes]:
    (folder / "weights").write_bytes(content := os.urandom(SIZE_BYTES))
    return node.artifact_cache.store.ingest(folder / "weights"), content


def flip(node: Node, artifact: ArtifactId, at: int) -> Path:
    path = node.artifact_cache.store.path(artifact) / "weights"
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    return path


async def served(by: Node, to: Node, artifact: ArtifactId) -> bytes:
    peer = to.peers.require(by.identity.node_id)
    source = PeerArtifactSource("it", peer.channels.bulk)
    pieces = [bytes(piece.data) async for piece in source.fetch(artifact, [(0, SIZE_BYTES)])]
    return b"".join(pieces)


async def test_an_adapter_comes_with_its_base(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, _):
        base, content = taken_in(one, tmp_path)
        adapter = tmp_path / "adapter"
        adapter.mkdir()
        said = json.dumps({"base_model_name_or_path": base})
        (adapter / "adapter_config.json").write_text(said)
        (adapter / "adapter_model.safetensors").write_bytes(b"small")
        artifact = one.artifact_cache.store.ingest(adapter)
        folder = await two.artifact_cache.ensure_model(artifact)
        found = base_beside(folder)
        assert found is not None
        assert (found / "weights").read_bytes() == content
        assert (folder / "adapter_model.safetensors").read_bytes() == b"small"
        inputs = {"model": artifact, "held_out": base}
        alone = await two.artifact_cache.ensure_all(inputs)
        both = await two.artifact_cache.ensure_all(inputs, with_bases=True)
        assert base_beside(Path(alone["model"])) is None
        assert (both["model"], both["held_out"]) == (str(folder), alone["held_out"])


async def test_a_damaged_copy_is_never_served_and_mended_from_another_one(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, third):
        artifact, content = taken_in(one, tmp_path)
        await two.artifact_cache.ensure(artifact)
        path = flip(one, artifact, 4 * CHUNK_BYTES + 17)
        with pytest.raises(CorruptArtifactError, match="damaged on this disk"):
            await served(one, third, artifact)
        await until(
            lambda: one.artifact_cache.store.holds(artifact) and path.read_bytes() == content
        )
        assert await served(one, third, artifact) == content


async def test_a_damaged_copy_that_is_the_only_one_stays_for_what_is_whole_of_it(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as (one, two, _):
        artifact, _ = taken_in(one, tmp_path)
        flip(one, artifact, 17)
        with pytest.raises(CorruptArtifactError):
            await two.artifact_cache.ensure(artifact)
        await one.artifact_cache.mend(artifact)
        assert one.artifact_cache.store.holds(artifact)
        assert not two.artifact_cache.store.holds(artifact)


async def test_two_copies_with_the_same_damage_both_go_on_serving_what_is_whole_of_them(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as (one, two, third):
        artifact, content = taken_in(one, tmp_path)
        await two.artifact_cache.ensure(artifact)
        for node in (one, two):
            flip(node, artifact, 4 * CHUNK_BYTES + 17)
        await one.artifact_cache.mend(artifact)
        assert one.artifact_cache.store.holds(artifact)
        # It met its own damage when it was asked, and sets its copy aside while it looks elsewhere.
        await until(lambda: two.artifact_cache.store.holds(artifact))
        peer = third.peers.require(one.identity.node_id)
        source = PeerArtifactSource("it", peer.channels.bulk)
        first = [(0, CHUNK_BYTES)]
        pieces = [bytes(piece.data) async for piece in source.fetch(artifact, first)]
        assert b"".join(pieces) == content[:CHUNK_BYTES]


async def test_two_who_want_the_same_at_once_get_it(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, third):
        artifact, content = taken_in(one, tmp_path)
        others = [node.identity.node_id for node in (two, third)]
        assert await one.artifact_cache.spread([artifact], others) == 2
        for node in (two, third):
            assert (node.artifact_cache.store.path(artifact) / "weights").read_bytes() == content
        await asyncio.gather(*(node.artifact_cache.ensure(artifact) for node in (two, third)))


async def test_what_is_sent_keeps_to_the_rate_that_people_set(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, _):
        artifact, _ = taken_in(one, tmp_path)
        one.artifact_cache._pace = SendPace(10e6, 1.0)
        began_s = now_s()
        await two.artifact_cache.ensure(artifact)
        assert now_s() - began_s > 0.8 * (SIZE_BYTES / 10e6 - BURST_S)


async def test_while_a_gang_runs_here_what_is_sent_gives_way(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, _):
        artifact, _ = taken_in(one, tmp_path)
        trains = False
        one.artifact_cache._trains = lambda: trains
        one.artifact_cache._pace = SendPace(0, 0.01)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await one.artifact_cache.throttle(1 << 20, 0.01)
        assert loop.time() - began_s < 0.5
        trains, began_s = True, loop.time()
        await one.artifact_cache.throttle(1 << 20, 0.01)
        assert loop.time() - began_s >= 0.9
        await two.artifact_cache.ensure(artifact)


async def test_a_node_tells_what_its_own_limits_leave_and_not_its_disk(tmp_path: Path) -> None:
    async with three(tmp_path) as (one, two, _):
        two.artifact_cache.store._room = DiskRoom(quota_bytes=CHUNK_BYTES)
        artifact, _ = taken_in(one, tmp_path)
        for asker in (one, two):
            told = await asker.artifact_cache.held_by(two.identity.node_id, [artifact])
            assert told == (two.identity.node_id, frozenset(), CHUNK_BYTES)
