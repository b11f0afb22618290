"""Pieces as they come, put together to chunks.

Owns the order in which a batch is due. Doesn't know where the pieces come from, or verify anything.
"""

from collections import deque
from collections.abc import Sequence

from jupiterd.errors import CorruptArtifactError
from jupiterd.store.bitmap import runs
from jupiterd.store.manifest import Manifest

ReceivedBytes = tuple[int, bytes | memoryview]
"""Where some bytes begin, in the files laid end to end, and the bytes."""

Whole = tuple[int, memoryview]
"""A chunk's number and its bytes."""


class Assembly:
    """Cuts the pieces of one batch into chunks; takes nothing that wasn't asked for."""

    def __init__(self, manifest: Manifest, chunks: Sequence[int]) -> None:
        """`chunks` are the numbers of the batch, rising."""
        self._due = deque(manifest.chunks[index] for index in chunks)
        self._parts: list[bytes | memoryview] = []
        self._received_bytes = 0
        ends = [(manifest.chunks[first], manifest.chunks[last - 1]) for first, last in runs(chunks)]
        self.ranges = [
            (first.offset, last.offset + last.size_bytes - first.offset) for first, last in ends
        ]
        """(offset, length) of each run, in bytes of the files laid end to end."""

    @property
    def is_waiting(self) -> bool:
        """Say whether a chunk is still to come."""
        return bool(self._due)

    def feed(self, offset: int, data: bytes | memoryview) -> list[Whole]:
        """Take the next piece and return the chunks that it completes, not yet verified.

        Raises:
            CorruptArtifactError: the piece isn't the next one.
        """
        if not data or not self._due or offset != self._due[0].offset + self._received_bytes:
            raise CorruptArtifactError("a transfer brought bytes that weren't asked for")
        self._parts.append(data)
        self._received_bytes += len(data)
        if self._received_bytes < self._due[0].size_bytes:
            return []
        return self._cut()

    def _cut(self) -> list[Whole]:
        """Return all chunks that are complete; what is left over begins the next one."""
        view = memoryview(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))
        complete: list[Whole] = []
        while self._due and len(view) >= self._due[0].size_bytes:
            chunk = self._due.popleft()
            complete.append((chunk.index, view[: chunk.size_bytes]))
            view = view[chunk.size_bytes :]
        if view and not self._due:
            raise CorruptArtifactError("a transfer brought bytes that weren't asked for")
        self._parts = [bytes(view)] if view else []
        self._received_bytes = len(view)
        return complete
