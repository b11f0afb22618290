"""How much of a disk artifacts may take."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest

from jupiterd.errors import DiskFullError, StateDirError
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.disk_room import DiskRoom
from jupiterd.store.manifest import CHUNK_BYTES


def test_what_would_be_more_than_the_quota_is_not_begun(tmp_path: Path) -> None:
    holder = ArtifactStore(tmp_path / "holder")
    manifests: list[bytes] = []
    for number in range(2):
        (tmp_path / "file").write_bytes(bytes([number]) * CHUNK_BYTES)
        manifests.append(holder.manifest_bytes(holder.ingest(tmp_path / "file")))
    store = ArtifactStore(tmp_path / "store", DiskRoom(quota_bytes=CHUNK_BYTES * 3 // 2))
    partial = store.begin(manifests[0])
    partial.write(0, bytes(CHUNK_BYTES))
    store.begin(manifests[0])  # what was begun goes on
    with pytest.raises(DiskFullError, match="that artifacts may take"):
        store.begin(manifests[1])
    assert len(list((tmp_path / "store" / "partial").iterdir())) == 1


def test_what_people_want_free_of_the_disk_stays_free(tmp_path: Path) -> None:
    DiskRoom(floor_bytes=1).check(tmp_path, 1)
    DiskRoom().check(tmp_path, 1 << 60)
    with pytest.raises(DiskFullError, match="free on the disk"):
        DiskRoom(floor_bytes=1 << 50).check(tmp_path, 1 << 60)


class Disk(NamedTuple):
    """What `shutil.disk_usage` returns, in bytes."""

    total: int
    used: int
    free: int


def has_disk(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Disk(total, total - free, free))


def test_a_store_says_how_much_its_limits_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_disk(monkeypatch, total=1 << 40, free=1 << 30)
    assert ArtifactStore(tmp_path / "1").free_bytes() == 1 << 30
    assert ArtifactStore(tmp_path / "2", DiskRoom(floor_bytes=1 << 29)).free_bytes() == 1 << 29
    assert ArtifactStore(tmp_path / "3", DiskRoom(floor_bytes=1 << 31)).free_bytes() == 0
    # Of a small disk no more than a twentieth is kept free.
    has_disk(monkeypatch, total=1 << 30, free=1 << 30)
    left = ArtifactStore(tmp_path / "4", DiskRoom(floor_bytes=1 << 31)).free_bytes()
    assert left == (1 << 30) - (1 << 30) // 20


def test_what_comes_and_goes_changes_what_the_quota_leaves(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store", DiskRoom(quota_bytes=CHUNK_BYTES * 3 // 2))
    assert store.free_bytes() == CHUNK_BYTES * 3 // 2
    (tmp_path / "file").write_bytes(b"1" * CHUNK_BYTES)
    artifact = store.ingest(tmp_path / "file")
    assert 0 < store.free_bytes() <= CHUNK_BYTES // 2
    (tmp_path / "file").write_bytes(b"2" * CHUNK_BYTES)
    store.ingest(tmp_path / "file")
    assert store.free_bytes() == 0
    store.remove(artifact)
    assert 0 < store.free_bytes() <= CHUNK_BYTES // 2


def test_files_are_counted_again_only_once_something_came_or_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(tmp_path / "store", DiskRoom(quota_bytes=1 << 30))
    counted: list[Path] = []
    monkeypatch.setattr(DiskRoom, "taken_bytes", lambda _, root: counted.append(root) or 0)
    for _ in range(3):
        store.free_bytes()
    assert len(counted) == 1
    (tmp_path / "file").write_bytes(b"some")
    store.ingest(tmp_path / "file")
    store.free_bytes()
    assert len(counted) == 2


def test_what_comes_and_goes_while_it_is_counted_troubles_nobody(tmp_path: Path) -> None:
    place, elsewhere, is_over = tmp_path / "store" / "ab", tmp_path / "elsewhere", Event()
    for number in range(40):
        (place / str(number)).mkdir(parents=True)
        (place / str(number) / "file").write_bytes(b"some")

    def come_and_go() -> None:
        while not is_over.is_set():
            place.rename(elsewhere)
            elsewhere.rename(place)

    with ThreadPoolExecutor() as pool:
        coming = pool.submit(come_and_go)
        try:
            for _ in range(200):
                DiskRoom(quota_bytes=1 << 30).check(tmp_path / "store", 1)
        finally:
            is_over.set()
        coming.result()


def test_a_folder_that_cannot_be_counted_is_told_as_the_state_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"some")
    holder = ArtifactStore(tmp_path / "holder")
    manifest_bytes = holder.manifest_bytes(holder.ingest(tmp_path / "file"))
    store = ArtifactStore(tmp_path / "store", DiskRoom(quota_bytes=1 << 30))

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("shutil.disk_usage", broken)
    with pytest.raises(StateDirError, match="Input/output error"):
        store.begin(manifest_bytes)
