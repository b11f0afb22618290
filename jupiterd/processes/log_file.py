"""Keeps the newest output of a worker on disk, up to a bound.

Owns the file and its predecessor. Doesn't know where the text comes from. Its methods block: call
them from a thread.
"""

from contextlib import suppress
from pathlib import Path

MAX_BYTES = 2 << 20
"""A file that would grow beyond this becomes `NAME.1` and replaces the one before."""


class LogFile:
    """The output of one worker."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._size_bytes = path.stat().st_size if path.exists() else 0
        self._last = b""

    @property
    def last_text(self) -> str:
        """Return the last 4096 bytes of the output."""
        return self._last.decode("utf-8", "replace")

    @property
    def last_line(self) -> str:
        """Return the last line that isn't blank; empty without output."""
        lines = [line.strip() for line in self.last_text.splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def append(self, data: bytes) -> None:
        """Append data; first move the file to `NAME.1` if it would grow too long."""
        self._last = (self._last + data)[-4096:]  # kept even if the disk is full
        if self._size_bytes and self._size_bytes + len(data) > self._max_bytes:
            with suppress(FileNotFoundError):  # the user has deleted the file
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._size_bytes = 0
        with self._path.open("ab") as file:
            file.write(data)
        self._size_bytes += len(data)
