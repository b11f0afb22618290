"""What an artifact consists of, and the name that follows from it.

Owns the manifest's form, its bounds, and where each chunk lies. Doesn't touch any file.

A manifest is msgpack: a list of [path, size in bytes, [BLAKE3 hex of each chunk]], sorted by path.
There is exactly one encoding of a given content, so equal folders have equal ids everywhere. One
that comes over the wire was written by somebody else and decides which files are written here, so
`decode` believes nothing.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, cast

import msgpack
from blake3 import blake3

from jupiterd.errors import CorruptArtifactError
from jupiterd.ids import ArtifactId

CHUNK_BYTES: Final = 1 << 20
MAX_FILES: Final = 100_000
MAX_PATH_BYTES: Final = 1024
MAX_NAME_BYTES: Final = 255
MAX_MANIFEST_BYTES: Final = 16 << 20
"""Enough for 250 GB of large files."""

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ManifestFile:
    """One file of an artifact."""

    path: str
    """Relative, with forward slashes."""
    size_bytes: int
    chunks: tuple[str, ...]
    """BLAKE3 of each CHUNK_BYTES of it, 64 hex digits; the last chunk may be shorter."""


@dataclass(frozen=True)
class Chunk:
    """One piece of one file that is verified by itself."""

    index: int
    """Its number among all chunks of the artifact."""
    file: ManifestFile
    offset_in_file: int
    offset: int
    """Where it begins when the artifact's files are laid end to end."""
    size_bytes: int
    hash: str


@dataclass(frozen=True)
class Manifest:
    """The files of one artifact, sorted by path."""

    files: tuple[ManifestFile, ...]

    @cached_property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size_bytes for file in self.files)

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """Every chunk in order; an empty file has none."""
        return tuple(self._each_chunk())

    @cached_property
    def _starts(self) -> list[int]:
        return [chunk.offset for chunk in self.chunks]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(file.size_bytes for file in self.files))

    def spans(self, offset: int, length: int) -> Iterator[tuple[ManifestFile, int, int]]:
        """Yield (file, offset in it, length) for a range of the files laid end to end.

        Raises:
            CorruptArtifactError: the range reaches beyond the end.
        """
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise CorruptArtifactError("a range beyond the end of the artifact was asked for")
        number = bisect_right(self._ends, offset)
        while length > 0:
            file = self.files[number]
            start = offset - (self._ends[number] - file.size_bytes)
            taken = min(length, file.size_bytes - start)
            if taken:
                yield file, start, taken
            offset, length, number = offset + taken, length - taken, number + 1

    def covering(self, offset: int, length: int) -> tuple[Chunk, ...]:
        """Return the chunks that a range of the files laid end to end touches.

        Raises:
            CorruptArtifactError: the range reaches beyond the end.
        """
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise CorruptArtifactError("a range beyond the end of the artifact was asked for")
        if not length:
            return ()
        first = bisect_right(self._starts, offset) - 1
        return self.chunks[first : bisect_left(self._starts, offset + length, lo=first)]

    def encode(self) -> bytes:
        """Return the one encoding of this manifest."""
        rows = [[file.path, file.size_bytes, file.chunks] for file in self.files]
        return cast("bytes", msgpack.packb(rows))

    def _each_chunk(self) -> Iterator[Chunk]:
        index = offset = 0
        for file in self.files:
            for number, digest in enumerate(file.chunks):
                start = number * CHUNK_BYTES
                size_bytes = min(CHUNK_BYTES, file.size_bytes - start)
                yield Chunk(index, file, start, offset, size_bytes, digest)
                index, offset = index + 1, offset + size_bytes


def artifact_id(manifest_bytes: bytes) -> ArtifactId:
    """Return the id of the artifact that this manifest describes."""
    return ArtifactId(blake3(manifest_bytes).hexdigest())


def is_artifact_id(text: str) -> bool:
    """Say whether this can be an artifact's id: 64 hex digits, hence safe as a file name."""
    return _HASH.fullmatch(text) is not None


def decode(manifest_bytes: bytes) -> Manifest:
    """Rebuild a manifest that somebody else wrote.

    Raises:
        CorruptArtifactError: it isn't canonical, or names anything that mustn't be written.
    """
    if len(manifest_bytes) > MAX_MANIFEST_BYTES:
        raise CorruptArtifactError("a manifest is larger than 16 MiB")
    try:
        rows = msgpack.unpackb(manifest_bytes, raw=False, max_ext_len=0, max_map_len=0)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise CorruptArtifactError("a manifest can't be read") from error
    if not isinstance(rows, list):
        raise CorruptArtifactError("a manifest isn't a list of files")
    manifest = Manifest(tuple(_file(row) for row in rows))
    check(manifest)
    if manifest.encode() != manifest_bytes:
        raise CorruptArtifactError("a manifest isn't in its one canonical form")
    return manifest


def check(manifest: Manifest) -> None:
    """Raise CorruptArtifactError unless every file may be written below an artifact's folder."""
    if len(manifest.files) > MAX_FILES:
        raise CorruptArtifactError(f"an artifact has more than {MAX_FILES} files")
    paths = [file.path for file in manifest.files]
    for path in paths:
        check_path(path)
    if paths != sorted(paths):
        raise CorruptArtifactError("a manifest isn't sorted by path")
    _check_distinct(paths)


def check_path(path: str) -> None:
    """Raise CorruptArtifactError unless this is a plain relative path with forward slashes."""
    try:
        size_bytes = len(path.encode())
    except UnicodeEncodeError as error:
        raise CorruptArtifactError("an artifact has a file name that isn't text") from error
    if not 0 < size_bytes <= MAX_PATH_BYTES:
        raise CorruptArtifactError("an artifact has a path that is empty or too long")
    if "\0" in path or "\\" in path:
        raise CorruptArtifactError(f"an artifact has a forbidden character in a path: {path!r}")
    for name in path.split("/"):
        if name in {"", ".", ".."} or len(name.encode()) > MAX_NAME_BYTES:
            raise CorruptArtifactError(f"an artifact has a path that may not be: {path[:80]!r}")


def _check_distinct(paths: list[str]) -> None:
    # Some file systems fold case and accents; two names that fall together there are one too many.
    folded = [unicodedata.normalize("NFC", path).casefold() for path in paths]
    folders = {path[:end] for path in folded for end in _slashes(path)}
    if len(set(folded)) != len(folded) or not folders.isdisjoint(folded):
        raise CorruptArtifactError("an artifact names one file twice, or a file and a folder alike")


def _slashes(path: str) -> list[int]:
    return [position for position, character in enumerate(path) if character == "/"]


def _file(row: Any) -> ManifestFile:  # noqa: ANN401 - straight from the wire
    match row:
        case [str(path), int(size_bytes), [*chunks]] if not isinstance(size_bytes, bool):
            expected = -(-size_bytes // CHUNK_BYTES)
            if size_bytes >= 0 and len(chunks) == expected and all(_is_hash(c) for c in chunks):
                return ManifestFile(path, size_bytes, tuple(chunks))
        case _:
            pass
    raise CorruptArtifactError("a manifest has an entry that doesn't describe a file")


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and is_artifact_id(value)
