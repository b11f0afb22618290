"""One file of an artifact that others hold."""

from pathlib import Path

import pytest

from jupiterd.errors import PeerUnreachableError
from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import CHUNK_BYTES
from jupiterd.store.single_file import file_of
from tests.unit.store.test_transfer import StoreSource, break_at

LARGE = bytes(range(256)) * (CHUNK_BYTES // 256) + b"and some more"
NOTE = b'{"kind": {"real": 7}}'


@pytest.fixture
def holder(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "holder")


@pytest.fixture
def artifact(holder: ArtifactStore, tmp_path: Path) -> ArtifactId:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, data in {"a": LARGE, "note": NOTE, "z": b"z", "none": b""}.items():
        (folder / name).write_bytes(data)
    return holder.ingest(folder)


@pytest.mark.parametrize(("path", "data"), [("note", NOTE), ("a", LARGE), ("z", b"z")])
async def test_a_file_comes_without_the_rest(
    holder: ArtifactStore, artifact: ArtifactId, path: str, data: bytes
) -> None:
    source = StoreSource("a", holder)
    assert await file_of(artifact, path, [source], 2 << 20) == data
    assert source.sent_bytes == len(data)


@pytest.mark.parametrize("path", ["none", "gone", "../a", "a"])
async def test_what_is_not_there_or_too_large_is_not_asked_for(
    holder: ArtifactStore, artifact: ArtifactId, path: str
) -> None:
    source = StoreSource("a", holder)
    assert await file_of(artifact, path, [source], 1 << 20) is None
    assert source.asked == []


async def test_a_source_that_breaks_lies_or_has_nothing_is_passed_over(
    holder: ArtifactStore, artifact: ArtifactId, tmp_path: Path
) -> None:
    bad = [
        StoreSource("empty", ArtifactStore(tmp_path / "empty")),
        StoreSource("broken", holder, break_at(0, PeerUnreachableError("gone"))),
        StoreSource("liar", holder, lambda piece: (piece[0], piece[1][::-1])),
        StoreSource("mute", holder, lambda _piece: None),
        StoreSource("flood", holder, lambda piece: (piece[0], piece[1] * 2)),
    ]
    assert await file_of(artifact, "note", bad, 1 << 20) is None
    assert await file_of(artifact, "note", [*bad, StoreSource("a", holder)], 1 << 20) == NOTE
