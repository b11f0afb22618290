from contextlib import suppress
from typing import Any, cast

import msgpack
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.errors import CorruptArtifactError
from jupiterd.store import manifest as module
from jupiterd.store.manifest import (
    CHUNK_BYTES,
    Manifest,
    ManifestFile,
    artifact_id,
    decode,
    is_artifact_id,
)

HASH = "ab" * 32


def raw(*rows: Any) -> bytes:
    return cast("bytes", msgpack.packb(list(rows)))


def row(path: str) -> list[Any]:
    return [path, 1, [HASH]]


def sized(*sizes: int) -> Manifest:
    return Manifest(
        tuple(
            ManifestFile(f"f{number:03}", size, (HASH,) * -(-size // CHUNK_BYTES))
            for number, size in enumerate(sizes)
        )
    )


def test_a_manifest_survives_its_encoding_and_its_id_is_the_hash() -> None:
    manifest = sized(0, 5, 3 * CHUNK_BYTES, CHUNK_BYTES + 1)
    encoded = manifest.encode()
    assert decode(encoded) == manifest
    assert artifact_id(encoded) == blake3(encoded).hexdigest()


def test_the_encoding_never_changes() -> None:
    # Ids of artifacts stand in ledgers: another encoding would make them all unknown.
    assert sized(1).encode() == b"\x91\x93\xa4f000\x01\x91\xd9\x40" + HASH.encode()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../up",
        "a/../../up",
        "a/..",
        ".",
        "./a",
        "a//b",
        "a/",
        "",
        "a\0b",
        "a\\..\\b",
        "x" * 256,
        "/".join(["d" * 200] * 6),
        "ä" * 128,
    ],
)
def test_a_path_that_leaves_the_folder_or_cannot_be_written_is_refused(path: str) -> None:
    with pytest.raises(CorruptArtifactError):
        decode(raw(row(path)))


@pytest.mark.parametrize(
    "paths",
    [("a", "a"), ("a", "a/b"), ("A", "a"), ("A", "a/b"), ("b", "a"), ("e\u0301", "\u00e9")],
    ids=["twice", "file and folder", "case", "case of a folder", "unsorted", "accents"],
)
def test_paths_that_fall_together_or_are_out_of_order_are_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(CorruptArtifactError):
        decode(raw(*map(row, paths)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x91",
        raw(row("a")) + b"\x00",
        msgpack.packb({"a": 1}),
        msgpack.packb("a"),
        raw("a"),
        raw(["a", 1]),
        raw(["a", -1, []]),
        raw(["a", True, [HASH]]),
        raw(["a", 1.0, [HASH]]),
        raw(["a", 1, []]),
        raw(["a", 0, [HASH]]),
        raw(["a", 1, [HASH.upper()]]),
        raw(["a", 1, [HASH + "\n"]]),
        raw(["a", 1, [7]]),
        raw([b"a", 1, [HASH]]),
        raw(["a", 1 << 63, [HASH]]),
        b"\x91\x93\xa1a\xcd\x00\x01\x91\xd9\x40" + HASH.encode(),
        b"\x91\x93\xa1\xff\x01\x91\xd9\x40" + HASH.encode(),
        b"\x91" * 5000,
        b"\xdd\xff\xff\xff\xff",
        msgpack.packb([msgpack.ExtType(1, b"x")]),
    ],
)
def test_bytes_that_are_no_canonical_manifest_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptArtifactError):
        decode(body)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_in_any_other_way(body: bytes) -> None:
    with suppress(CorruptArtifactError):
        assert decode(body).encode() == body


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[f"{number:03}", 0, []] for number in range(11)]
    monkeypatch.setattr(module, "MAX_FILES", 10)
    assert len(decode(raw(*rows[:10])).files) == 10
    with pytest.raises(CorruptArtifactError, match="more than 10 files"):
        decode(raw(*rows))


def test_a_manifest_over_its_limit_is_refused_unread() -> None:
    with pytest.raises(CorruptArtifactError, match="larger than 16 MiB"):
        decode(bytes((16 << 20) + 1))


def test_chunks_lie_end_to_end_and_skip_empty_files() -> None:
    chunks = sized(0, 5, CHUNK_BYTES + 2, 0, 1).chunks
    assert [(c.file.path, c.offset_in_file, c.size_bytes) for c in chunks] == [
        ("f001", 0, 5),
        ("f002", 0, CHUNK_BYTES),
        ("f002", CHUNK_BYTES, 2),
        ("f004", 0, 1),
    ]
    assert [c.offset for c in chunks] == [0, 5, 5 + CHUNK_BYTES, 7 + CHUNK_BYTES]


@given(st.lists(st.integers(0, 9), max_size=8), st.data())
def test_a_range_is_cut_at_the_files_borders(sizes: list[int], data: st.DataObject) -> None:
    manifest = sized(*sizes)
    laid_out = [(f.path, at) for f in manifest.files for at in range(f.size_bytes)]
    offset = data.draw(st.integers(0, len(laid_out)))
    length = data.draw(st.integers(0, len(laid_out) - offset))
    spans = list(manifest.spans(offset, length))
    assert [(f.path, start + i) for f, start, n in spans for i in range(n)] == laid_out[
        offset : offset + length
    ]
    assert all(n for _, _, n in spans)


@pytest.mark.parametrize(("offset", "length"), [(0, 6), (6, 0), (-1, 2), (2, -1), (5, 1)])
def test_a_range_beyond_the_end_is_refused(offset: int, length: int) -> None:
    with pytest.raises(CorruptArtifactError, match="beyond the end"):
        list(sized(5).spans(offset, length))


def test_only_64_small_hex_digits_are_an_id() -> None:
    assert is_artifact_id(HASH)
    for text in ("", HASH[:-1], HASH + "0", HASH.upper(), "../" + HASH[3:], HASH[:-1] + "\n"):
        assert not is_artifact_id(text)
