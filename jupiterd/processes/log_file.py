"""What a worker prints, on disk: bounded, the newest kept.

Owns the file and its predecessor. Doesn't know where the text comes from. Blocks: call it from a
thread.
"""

from contextlib import suppress
from pathlib import Path

MAX_BYTES = 2 << 20
"""A file that would grow longer becomes `NAME.1`, in the place of the one before."""


class LogFile:
    """One worker's output."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._size_bytes = path.stat().st_size if path.exists() else 0
        self._last = b""

    @property
    def last_text(self) -> str:
        """Return what was printed last, a page of it at the most."""
        return self._last.decode("utf-8", "replace")

    @property
    def last_line(self) -> str:
        """Return the newest line that says anything; empty where nothing was printed."""
        lines = [line.strip() for line in self.last_text.splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def append(self, data: bytes) -> None:
        """Add to the end, and make room first where there is none."""
        self._last = (self._last + data)[-4096:]  # what was said counts, even if the disk is full
        if self._size_bytes and self._size_bytes + len(data) > self._max_bytes:
            with suppress(FileNotFoundError):  # somebody has made room himself
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._size_bytes = 0
        with self._path.open("ab") as file:
            file.write(data)
        self._size_bytes += len(data)
