"""The bytes of one file, shared out to what is made of them: what is used and left out is all.

Owns the sum: rows and pieces say themselves about how large they are, and marks, headers, quotes
and another encoding lie between. Doesn't know rows.
"""

from collections.abc import Callable
from typing import IO


class CountedStream:
    """A stream that counts what is read of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._stream.read(size)
        self.bytes += len(data)
        return data


class Shares:
    """Shares out the bytes that were read by then, and no more."""

    def __init__(self, seen: Callable[[], int]) -> None:
        """Take what says how many they are."""
        self._seen = seen
        self._handed_out = 0

    def of(self, size: int) -> int:
        """Return how many go to what is about so large."""
        share = max(0, min(size, self._seen() - self._handed_out))
        self._handed_out += share
        return share

    def rest(self) -> int:
        """Return how many nobody got, at the end; they are given then."""
        return self.of(1 << 62)
