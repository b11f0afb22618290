"""An artifact on its way in.

Owns the files of one fetch until they are whole. Doesn't know where the chunks come from.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from blake3 import blake3

from jupiterd.errors import Bug, CorruptArtifactError
from jupiterd.store.disk import written
from jupiterd.store.manifest import Chunk, Manifest


class PartialArtifact:
    """Takes verified chunks in any order; one user at a time."""

    def __init__(self, manifest: Manifest, files: Path, publish: Callable[[], None]) -> None:
        self.manifest = manifest
        self._files = files
        self._publish = publish
        with written():
            self._verified = {chunk.index for chunk in manifest.chunks if self._is_here(chunk)}

    def missing(self) -> list[tuple[int, int]]:
        """Return the (first, after last) chunk numbers that are still to come, joined into runs."""
        runs: list[tuple[int, int]] = []
        for chunk in self.manifest.chunks:
            if chunk.index in self._verified:
                continue
            if runs and runs[-1][1] == chunk.index:
                runs[-1] = (runs[-1][0], chunk.index + 1)
            else:
                runs.append((chunk.index, chunk.index + 1))
        return runs

    def write(self, index: int, data: bytes) -> None:
        """Put one chunk where it belongs.

        Raises:
            CorruptArtifactError: the data isn't what the manifest says.
        """
        chunk = self.manifest.chunks[index]
        if len(data) != chunk.size_bytes or blake3(data).hexdigest() != chunk.hash:
            raise CorruptArtifactError(f"chunk {index} of {chunk.file.path} doesn't match its hash")
        with written(), self._writable(chunk.file.path).open("r+b") as file:
            file.seek(chunk.offset_in_file)
            file.write(data)
        self._verified.add(index)

    def write_all(self, chunks: Sequence[tuple[int, bytes]]) -> None:
        """Write several chunks, so that a thread is started for many small ones at once."""
        for index, data in chunks:
            self.write(index, data)

    def commit(self) -> None:
        """Put the complete artifact in its place in the store."""
        if self.missing():
            raise Bug("an artifact was committed before all of it was there")
        with written():
            for file in self.manifest.files:
                with self._writable(file.path).open("r+b") as whole:
                    whole.truncate(file.size_bytes)
            self._publish()

    def _writable(self, name: str) -> Path:
        path = self._files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        path.chmod(0o644)  # read-only already where a commit was broken off
        return path

    def _is_here(self, chunk: Chunk) -> bool:
        try:
            with (self._files / chunk.file.path).open("rb") as file:
                file.seek(chunk.offset_in_file)
                return blake3(file.read(chunk.size_bytes)).hexdigest() == chunk.hash
        except FileNotFoundError:
            return False
