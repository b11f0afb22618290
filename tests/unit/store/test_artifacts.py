import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupiterd.adapter_folder import base_beside
from jupiterd.errors import (
    Bug,
    CorruptArtifactError,
    DiskFullError,
    NotFoundError,
    StateDirError,
)
from jupiterd.ids import ArtifactId
from jupiterd.store import disk
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import CHUNK_BYTES, decode

FILES = {"config.json": b"{}", "empty": b"", "sub/a/weights": os.urandom(CHUNK_BYTES + 77)}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


def folder(parent: Path, files: dict[str, bytes] = FILES, name: str = "source") -> Path:
    for path, content in files.items():
        (parent / name / path).parent.mkdir(parents=True, exist_ok=True)
        (parent / name / path).write_bytes(content)
    return parent / name


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def copied(source: ArtifactStore, target: ArtifactStore, artifact: ArtifactId) -> None:
    partial = target.begin(source.manifest_bytes(artifact))
    for first, after in partial.missing():
        for chunk in partial.manifest.chunks[first:after]:
            partial.write(chunk.index, source.read(artifact, chunk.offset, chunk.size_bytes))
    partial.commit()


def test_a_folder_is_taken_in_and_its_source_is_gone(store: ArtifactStore, tmp_path: Path) -> None:
    source = folder(tmp_path)
    artifact = store.ingest(source)
    assert not source.exists()
    assert store.holds(artifact)
    assert store.ids() == [artifact]
    assert contents(store.path(artifact)) == FILES
    assert store.path(artifact) == tmp_path / "store" / artifact[:2] / artifact / "files"


def test_files_in_the_store_are_read_only(store: ArtifactStore, tmp_path: Path) -> None:
    files = store.path(store.ingest(folder(tmp_path)))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files.rglob("*") if path.is_file()}
    assert modes == {0o444}


def test_equal_folders_have_one_id_and_lie_there_once(store: ArtifactStore, tmp_path: Path) -> None:
    first = store.ingest(folder(tmp_path))
    again = folder(tmp_path, dict(reversed(FILES.items())), "again")
    assert store.ingest(again) == first
    assert not again.exists()
    assert store.ids() == [first]
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


def test_one_file_counts_as_a_folder_of_itself(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_bytes(b"{}")
    alone = store.ingest(tmp_path / "verdict.json")
    assert contents(store.path(alone)) == {"verdict.json": b"{}"}
    assert not (tmp_path / "verdict.json").exists()
    assert store.ingest(folder(tmp_path, {"verdict.json": b"{}"})) == alone


def test_an_empty_folder_is_an_artifact_too(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "source" / "hollow").mkdir(parents=True)
    artifact = store.ingest(tmp_path / "source")
    assert contents(store.path(artifact)) == {}
    assert store.read(artifact, 0, 0) == b""


def test_any_range_of_the_files_laid_end_to_end_can_be_read(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    whole = b"".join(FILES[path] for path in sorted(FILES))
    assert store.read(artifact, 0, len(whole)) == whole
    assert store.read(artifact, 1, 9) == whole[1:10]
    with pytest.raises(CorruptArtifactError, match="beyond the end"):
        store.read(artifact, len(whole), 1)


def test_a_file_that_was_cut_short_on_disk_is_noticed(store: ArtifactStore, tmp_path: Path) -> None:
    artifact = store.ingest(folder(tmp_path))
    path = store.path(artifact) / "config.json"
    path.chmod(0o644)
    path.write_bytes(b"{")
    with pytest.raises(CorruptArtifactError, match="damaged on this disk"):
        store.read(artifact, 0, 2)


@pytest.mark.parametrize("name", ["0" * 64, "", "..", "../../../etc", "0" * 63 + "/"])
def test_what_is_not_held_or_no_id_at_all_is_not_found(store: ArtifactStore, name: str) -> None:
    artifact = ArtifactId(name)
    assert not store.holds(artifact)
    for attempt in (store.path, store.manifest_bytes, store.manifest):
        with pytest.raises(NotFoundError):
            attempt(artifact)
    with pytest.raises(NotFoundError):
        store.read(artifact, 0, 1)


def test_links_are_not_taken_in(store: ArtifactStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for others")
    source = folder(tmp_path, {"a": b"1"})
    (source / "link").symlink_to(secret)
    with pytest.raises(CorruptArtifactError, match="no plain file"):
        store.ingest(source)
    (source / "link").unlink()
    (source / "linked").symlink_to(tmp_path)
    with pytest.raises(CorruptArtifactError, match="is a link"):
        store.ingest(source)
    with pytest.raises(CorruptArtifactError, match="no plain file"):
        store.ingest(source / "linked")
    assert (source / "a").exists()
    assert store.ids() == []


def test_a_name_that_cannot_travel_is_not_taken_in(store: ArtifactStore, tmp_path: Path) -> None:
    source = folder(tmp_path, {"back\\slash": b""})
    with pytest.raises(CorruptArtifactError, match="forbidden character"):
        store.ingest(source)
    assert source.exists()


def test_a_source_that_is_missing_is_named(store: ArtifactStore, tmp_path: Path) -> None:
    with pytest.raises(StateDirError, match="absent"):
        store.ingest(tmp_path / "absent")


def test_a_full_disk_is_called_that(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "fsync", full)
    with pytest.raises(DiskFullError):
        store.ingest(folder(tmp_path))
    assert store.ids() == []


def test_a_start_clears_away_what_a_crash_left_half_taken_in(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    (tmp_path / "store" / "incoming" / "half").mkdir()
    again = ArtifactStore(tmp_path / "store")
    assert again.ids() == [artifact]
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


def test_chunk_by_chunk_the_same_artifact_appears_elsewhere(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    other = ArtifactStore(tmp_path / "other")
    copied(store, other, artifact)
    assert contents(other.path(artifact)) == FILES
    assert other.manifest_bytes(artifact) == store.manifest_bytes(artifact)
    assert list((tmp_path / "other" / "partial").iterdir()) == []


def test_a_chunk_that_does_not_match_is_refused_and_stays_missing(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    partial = ArtifactStore(tmp_path / "other").begin(store.manifest_bytes(artifact))
    assert partial.missing() == [(0, 3)]
    for wrong in (b"[]", b"", b"{}{}"):
        with pytest.raises(CorruptArtifactError, match=r"chunk 0 of config\.json"):
            partial.write(0, wrong)
    partial.write(0, b"{}")
    assert partial.missing() == [(1, 3)]
    with pytest.raises(Bug):
        partial.commit()


def test_a_fetch_goes_on_where_it_broke_off_and_trusts_nothing_on_disk(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    other = ArtifactStore(tmp_path / "other")
    manifest_bytes = store.manifest_bytes(artifact)
    chunks = decode(manifest_bytes).chunks
    partial = other.begin(manifest_bytes)
    for index in (0, 1):
        partial.write(index, store.read(artifact, chunks[index].offset, chunks[index].size_bytes))

    weights = tmp_path / "other" / "partial" / artifact / "files" / "sub/a/weights"
    assert ArtifactStore(tmp_path / "other").begin(manifest_bytes).missing() == [(2, 3)]
    weights.write_bytes(b"X" + weights.read_bytes()[1:])
    resumed = ArtifactStore(tmp_path / "other").begin(manifest_bytes)
    assert resumed.missing() == [(1, 3)]
    assert not other.holds(artifact)
    copied(store, other, artifact)
    assert contents(other.path(artifact)) == FILES


def test_a_commit_that_was_cut_off_can_be_done_again(store: ArtifactStore, tmp_path: Path) -> None:
    artifact = store.ingest(folder(tmp_path))
    other = ArtifactStore(tmp_path / "other")
    partial = other.begin(store.manifest_bytes(artifact))
    for chunk in partial.manifest.chunks:
        partial.write(chunk.index, store.read(artifact, chunk.offset, chunk.size_bytes))
    weights = tmp_path / "other" / "partial" / artifact / "files" / "sub/a/weights"
    weights.write_bytes(weights.read_bytes() + b"longer than it should be")
    disk.sync_tree(tmp_path / "other" / "partial" / artifact)
    copied(store, other, artifact)
    assert contents(other.path(artifact)) == FILES


def test_an_artifact_that_arrives_both_ways_lies_there_once(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    other = ArtifactStore(tmp_path / "other")
    partial = other.begin(store.manifest_bytes(artifact))
    for chunk in partial.manifest.chunks:
        partial.write(chunk.index, store.read(artifact, chunk.offset, chunk.size_bytes))
    assert other.ingest(folder(tmp_path)) == artifact
    partial.commit()
    assert contents(other.path(artifact)) == FILES


def test_a_hostile_manifest_writes_nothing(store: ArtifactStore, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorruptArtifactError):
        store.begin(b"\x91\x93\xa5../up\x00\x90")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_given_up_is_gone_for_good(store: ArtifactStore, tmp_path: Path) -> None:
    source = tmp_path / "given-up"
    source.mkdir()
    (source / "a.txt").write_text("a")
    artifact = store.ingest(source)
    store.manifest(artifact)
    store.remove(artifact)
    store.remove(artifact)
    assert not store.holds(artifact)
    assert store.ids() == []
    with pytest.raises(NotFoundError):
        store.manifest(artifact)
    source.mkdir()
    (source / "a.txt").write_text("a")
    assert store.ingest(source) == artifact
    assert store.holds(artifact)


def test_what_is_made_anew_or_used_meanwhile_does_not_go(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    place = store.path(artifact).parent
    os.utime(place, (1000, 1000))
    assert store.unused_since(2000.0) == [artifact]
    assert store.ingest(folder(tmp_path, name="again")) == artifact
    assert store.unused_since(2000.0) == []
    assert not store.remove(artifact, unused_since_s=2000.0)
    assert store.holds(artifact)
    os.utime(place, (1000, 1000))
    assert store.remove(artifact, unused_since_s=2000.0)
    assert not store.holds(artifact)
    assert not list((tmp_path / "store" / "incoming").iterdir())


def test_what_was_set_aside_and_begun_to_be_mended_is_held_again_once_it_is_put_back(
    store: ArtifactStore, tmp_path: Path
) -> None:
    artifact = store.ingest(folder(tmp_path))
    manifest_bytes = store.manifest_bytes(artifact)
    store.set_aside(artifact)
    store.begin(manifest_bytes)
    store.put_back(artifact)
    store.put_back(artifact)
    assert contents(store.path(artifact)) == FILES
    modes = {stat.S_IMODE(each.stat().st_mode) for each in store.path(artifact).iterdir()}
    assert 0o644 not in modes
    assert store.partial_ids() == []


def adapter_in(store: ArtifactStore, tmp_path: Path) -> tuple[ArtifactId, ArtifactId]:
    """Take in a model and an adapter to it; return both ids, the adapter's first."""
    whole = {"config.json": b"{}", "model.safetensors": b"frozen"}
    base = store.ingest(folder(tmp_path, whole, "base"))
    said = json.dumps({"base_model_name_or_path": base}).encode()
    alone = {"adapter_config.json": said, "adapter_model.safetensors": b"small"}
    return store.ingest(folder(tmp_path, alone, "adapter")), base


def test_an_adapter_has_its_base_beside_it(store: ArtifactStore, tmp_path: Path) -> None:
    adapter, base = adapter_in(store, tmp_path)
    assert store.base_of(adapter) == base
    assert store.base_of(base) is None
    assert store.model_path(base) == store.path(base)
    both = store.model_path(adapter)
    assert (both / "config.json").read_bytes() == b"{}"
    assert (both / "adapter_model.safetensors").read_bytes() == b"small"
    assert base_beside(both) == store.path(base).resolve()
    assert store.model_path(adapter) == both
    assert store.ids() == sorted([adapter, base])


def test_an_adapter_without_its_base_is_no_model(store: ArtifactStore, tmp_path: Path) -> None:
    adapter, base = adapter_in(store, tmp_path)
    store.model_path(adapter)
    store.remove(base)
    with pytest.raises(NotFoundError, match=base[:8]):
        store.model_path(adapter)


def test_two_callers_have_one_folder_of_an_adapter_and_its_base(
    store: ArtifactStore, tmp_path: Path
) -> None:
    adapter, _ = adapter_in(store, tmp_path)
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(store.model_path, [adapter] * 64))
    assert len(found) == 1
    assert not list((tmp_path / "store" / "incoming").iterdir())


def test_an_adapter_that_is_given_up_leaves_no_links(store: ArtifactStore, tmp_path: Path) -> None:
    adapter, _ = adapter_in(store, tmp_path)
    place = store.model_path(adapter)
    assert store.remove(adapter)
    assert not place.exists()


def test_an_adapter_has_its_base_in_a_state_folder_that_was_moved(
    store: ArtifactStore, tmp_path: Path
) -> None:
    adapter, base = adapter_in(store, tmp_path)
    store.model_path(adapter)
    (tmp_path / "store").rename(tmp_path / "moved")
    moved = ArtifactStore(tmp_path / "moved")
    both = moved.model_path(adapter)
    assert (both / "config.json").read_bytes() == b"{}"
    assert base_beside(both) == moved.path(base).resolve()
