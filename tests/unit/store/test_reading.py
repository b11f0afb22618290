"""What is read for others is checked first, whether all of an artifact is here or some of it."""

import asyncio
import os
from pathlib import Path

import pytest

from jupiterd.errors import CorruptArtifactError, NotFoundError
from jupiterd.ids import ArtifactId
from jupiterd.store import partial_availability as growth_module
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import CHUNK_BYTES
from jupiterd.store.reading import ServedArtifact, read_ahead

SIZES = {"a": 10, "empty": 0, "b": 2 * CHUNK_BYTES + 5, "c": 7}


def made(folder: Path) -> tuple[ArtifactStore, ArtifactId, bytes]:
    store, source = ArtifactStore(folder / "store"), folder / "source"
    source.mkdir()
    files = {name: os.urandom(size) for name, size in SIZES.items()}
    for name, content in files.items():
        (source / name).write_bytes(content)
    return store, store.ingest(source), b"".join(files[name] for name in sorted(files))


async def all_of(reading: ServedArtifact, *ranges: tuple[int, int]) -> bytes:
    came = [piece async for piece in read_ahead(reading, ranges)]
    expected = iter([block for each in ranges for block in reading.blocks(*each)])
    assert [(offset, len(data)) for offset, data in came] == list(expected)
    return b"".join(data for _, data in came)


async def test_any_range_is_read_as_it_is(tmp_path: Path) -> None:
    store, artifact, whole = made(tmp_path)
    reading = ServedArtifact(store, artifact)
    for start, length in ((0, len(whole)), (3, 4), (9, 2), (5, CHUNK_BYTES), (len(whole) - 1, 1)):
        assert await all_of(reading, (start, length)) == whole[start : start + length]
    assert await all_of(reading, (0, 3), (20, 0), (100, 50)) == whole[:3] + whole[100:150]
    for wrong in ((0, len(whole) + 1), (len(whole), 1), (-1, 1)):
        with pytest.raises(CorruptArtifactError, match="beyond the end"):
            await all_of(reading, wrong)


async def test_a_damaged_chunk_is_never_given_and_the_others_are(tmp_path: Path) -> None:
    store, artifact, whole = made(tmp_path)
    path = store.path(artifact) / "b"
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(CHUNK_BYTES + 3)
        file.write(bytes([whole[10 + CHUNK_BYTES + 3] ^ 1]))
    reading = ServedArtifact(store, artifact)
    assert reading.read(0, 10 + CHUNK_BYTES) == whole[: 10 + CHUNK_BYTES]
    for start, length in ((10 + CHUNK_BYTES, 1), (10 + 2 * CHUNK_BYTES - 1, 2), (0, len(whole))):
        with pytest.raises(CorruptArtifactError, match="damaged on this disk"):
            reading.read(start, length)
    path.unlink()
    with pytest.raises(CorruptArtifactError, match="lacks a file"):
        reading.read(0, 20)


async def test_what_grows_gives_what_it_has_and_goes_on_giving_in_its_place(tmp_path: Path) -> None:
    holder, artifact, whole = made(tmp_path)
    manifest_bytes = holder.manifest_bytes(artifact)
    store = ArtifactStore(tmp_path / "other")
    with pytest.raises(NotFoundError):
        ServedArtifact(store, artifact)
    partial = store.begin(manifest_bytes)
    partial.write(0, whole[:10])
    with store.grown(partial, manifest_bytes) as growth:
        reading = ServedArtifact(store, artifact)
        assert reading.read(2, 5) == whole[2:7]
        with pytest.raises(NotFoundError, match="yet"):
            reading.read(5, 10)
        more = asyncio.ensure_future(growth.wait(5.0))
        await asyncio.sleep(0)
        for chunk in partial.manifest.chunks[1:]:
            partial.write(chunk.index, whole[chunk.offset : chunk.offset + chunk.size_bytes])
        growth.note()
        await more
        assert reading.read(5, 10) == whole[5:15]
        partial.commit()
        assert reading.read(0, len(whole)) == whole
    assert reading.read(0, len(whole)) == whole


async def test_what_came_a_moment_ago_is_given_as_it_was_checked_whatever_the_disk_says(
    tmp_path: Path,
) -> None:
    holder, artifact, whole = made(tmp_path)
    manifest_bytes = holder.manifest_bytes(artifact)
    store = ArtifactStore(tmp_path / "other")
    partial = store.begin(manifest_bytes)
    with store.grown(partial, manifest_bytes) as growth:
        chunks = [
            (chunk.index, memoryview(whole)[chunk.offset : chunk.offset + chunk.size_bytes])
            for chunk in partial.manifest.chunks
        ]
        partial.write_all(chunks)
        reading = ServedArtifact(store, artifact)
        growth.keep(chunks)
        assert reading.at_hand(0, 10) is None, "nobody asks, so nothing is kept"
        growth.share()
        growth.keep(chunks[:3])
        damaged = growth.files / "b"
        damaged.write_bytes(bytes(damaged.stat().st_size))
        length = 10 + 2 * CHUNK_BYTES
        came = [part async for part in read_ahead(reading, [(3, 4), (9, length - 9)])]
        assert b"".join(data for _, data in came) == whole[3:7] + whole[9:length]
        assert [offset for offset, _ in came] == [3, 9, 10, 10 + CHUNK_BYTES]
        assert reading.at_hand(9, length + 1 - 9) is None, "part of it isn't in memory"
        with pytest.raises(CorruptArtifactError, match="damaged on this disk"):
            await anext(read_ahead(reading, [(9, length + 1 - 9)]))


def test_no_more_than_the_latest_chunks_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth_module, "MAX_CACHED_BYTES", CHUNK_BYTES + 5)
    holder, artifact, whole = made(tmp_path)
    manifest_bytes = holder.manifest_bytes(artifact)
    store = ArtifactStore(tmp_path / "other")
    partial = store.begin(manifest_bytes)
    with store.grown(partial, manifest_bytes) as growth:
        growth.share()
        for chunk in partial.manifest.chunks:
            data = memoryview(whole)[chunk.offset : chunk.offset + chunk.size_bytes]
            growth.keep([(chunk.index, data)])
            growth.keep([(chunk.index, data)])
        kept = [chunk.index for chunk in partial.manifest.chunks if growth.cached(chunk)]
    assert kept == [3, 4]
