"""What is here already of a new artifact isn't fetched."""

import os
from pathlib import Path

from jupiterd.ids import ArtifactId
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.bitmap import each
from jupiterd.store.manifest import CHUNK_BYTES, decode
from jupiterd.store.seeding import new_bytes


def taken_in(root: Path, files: dict[str, bytes]) -> tuple[ArtifactStore, ArtifactId]:
    store = ArtifactStore(root / "store")
    source = root / "source"
    for name, data in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    return store, store.ingest(source)


def test_only_chunks_that_are_new_are_still_to_come(tmp_path: Path):
    large = os.urandom(3 * CHUNK_BYTES)
    changed = large[:CHUNK_BYTES] + os.urandom(CHUNK_BYTES) + large[2 * CHUNK_BYTES :]
    old = {"a/large.bin": large, "model.py": b"x", "same.py": b"same", "empty": b""}
    new = {"a/large.bin": changed, "moved/model.py": b"x", "same.py": b"same", "empty": b""}
    here, before = taken_in(tmp_path / "here", old)
    there, after = taken_in(tmp_path / "there", new)
    partial = here.begin(there.manifest_bytes(after), like=[before, ArtifactId("0" * 64)])
    (chunk,) = [partial.manifest.chunks[index] for index in each(partial.lacking)]
    assert (chunk.file.path, chunk.offset_in_file) == ("a/large.bin", CHUNK_BYTES)
    others = [here.manifest(before)]
    assert new_bytes(decode(there.manifest_bytes(after)), others) == CHUNK_BYTES
    assert here.manifest(before).size_bytes == 3 * CHUNK_BYTES + 5
    assert (here.path(before) / "a" / "large.bin").read_bytes() == large, "it is copied, not shared"


def test_a_damaged_copy_gives_nothing_away(tmp_path: Path):
    here, before = taken_in(tmp_path / "here", {"a": b"right"})
    there, after = taken_in(tmp_path / "there", {"a": b"right", "b": b"more"})
    damaged = here.path(before) / "a"
    damaged.chmod(0o644)
    damaged.write_bytes(b"wrong")
    partial = here.begin(there.manifest_bytes(after), like=[before])
    lacking = [partial.manifest.chunks[index].file.path for index in each(partial.lacking)]
    assert lacking == ["a", "b"]
