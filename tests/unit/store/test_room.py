"""How much of a disk artifacts may take."""

from pathlib import Path

import pytest

from jupiterd.errors import DiskFullError
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import CHUNK_BYTES
from jupiterd.store.room import Room


def test_what_would_be_more_than_the_quota_is_not_begun(tmp_path: Path) -> None:
    holder = ArtifactStore(tmp_path / "holder")
    manifests: list[bytes] = []
    for number in range(2):
        (tmp_path / "file").write_bytes(bytes([number]) * CHUNK_BYTES)
        manifests.append(holder.manifest_bytes(holder.ingest(tmp_path / "file")))
    store = ArtifactStore(tmp_path / "store", Room(quota_bytes=CHUNK_BYTES * 3 // 2))
    partial = store.begin(manifests[0])
    partial.write(0, bytes(CHUNK_BYTES))
    store.begin(manifests[0])  # what was begun goes on
    with pytest.raises(DiskFullError, match="that artifacts may take"):
        store.begin(manifests[1])
    assert len(list((tmp_path / "store" / "partial").iterdir())) == 1


def test_what_people_want_free_of_the_disk_stays_free(tmp_path: Path) -> None:
    Room(floor_bytes=1).check(tmp_path, 1)
    Room().check(tmp_path, 1 << 60)
    with pytest.raises(DiskFullError, match="free on the disk"):
        Room(floor_bytes=1 << 50).check(tmp_path, 1 << 60)
