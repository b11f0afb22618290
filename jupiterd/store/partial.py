"""An artifact that is being fetched.

Owns its files until they are complete, and the set of verified chunks. Doesn't know where chunks
come from.
"""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from blake3 import blake3

from jupiterd.errors import Bug, CorruptArtifactError
from jupiterd.store.bitmap import each as each_of
from jupiterd.store.bitmap import full, of, runs
from jupiterd.store.disk import written
from jupiterd.store.manifest import Chunk, Manifest, ManifestFile

_WRITABLE: Final = 0o644


class PartialArtifact:
    """Stores chunks in any order, from any thread; each is verified before it is written."""

    def __init__(self, manifest: Manifest, files: Path, publish: Callable[[], None]) -> None:
        self.manifest = manifest
        self._files = files
        self._publish = publish
        self._adding = threading.Lock()
        with written():
            fresh = {file.path for file in manifest.files if self._prepare(file)}
        present = (chunk for chunk in manifest.chunks if chunk.file.path not in fresh)
        with written():
            self._verified = of(chunk.index for chunk in present if self._is_here(chunk))

    @property
    def verified(self) -> int:
        """The chunks that are stored, as a bit set."""
        return self._verified

    @property
    def lacking(self) -> int:
        """The chunks that are missing, as a bit set."""
        return full(len(self.manifest.chunks)) & ~self._verified

    def missing(self) -> list[tuple[int, int]]:
        """Return the runs of missing chunks as (first, one past the last) chunk numbers."""
        return runs(each_of(self.lacking))

    def write(self, index: int, data: bytes | memoryview) -> None:
        """Put one chunk where it belongs.

        Raises:
            CorruptArtifactError: the data isn't what the manifest says.
        """
        chunk = self.manifest.chunks[index]
        if len(data) != chunk.size_bytes or blake3(data).hexdigest() != chunk.hash:
            raise CorruptArtifactError(f"chunk {index} of {chunk.file.path} doesn't match its hash")
        with written():
            _write_at(self._files / chunk.file.path, data, chunk.offset_in_file)
        with self._adding:
            self._verified |= 1 << index

    def write_all(self, chunks: Sequence[tuple[int, bytes | memoryview]]) -> None:
        """Write several chunks, so that a thread is started for many small ones at once."""
        for index, data in chunks:
            self.write(index, data)

    def commit(self) -> None:
        """Put the complete artifact in its place in the store."""
        if self.lacking:
            raise Bug("an artifact was committed before all of it was there")
        with written():
            self._publish()

    def _prepare(self, file: ManifestFile) -> bool:
        """Make a file of its full size, and say whether it wasn't there before.

        Whatever is written into it later is there already as far as the file system cares: to grow
        a file with each chunk takes several times as long.
        """
        path = self._files / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        is_fresh = not path.exists()
        path.touch()
        path.chmod(_WRITABLE)  # read-only already where a commit was broken off
        os.truncate(path, file.size_bytes)
        return is_fresh

    def _is_here(self, chunk: Chunk) -> bool:
        with (self._files / chunk.file.path).open("rb") as file:
            file.seek(chunk.offset_in_file)
            return blake3(file.read(chunk.size_bytes)).hexdigest() == chunk.hash


def _write_at(path: Path, data: bytes | memoryview, offset: int) -> None:
    """Write, and let the system begin to bring it to the disk: the end waits for all of it."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        view, start = memoryview(data), offset
        while view:
            count = os.pwrite(descriptor, view, offset)
            view, offset = view[count:], offset + count
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, start, len(data), os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
