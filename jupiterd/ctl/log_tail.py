"""The end of a log file that grows and is exchanged for a new one.

Owns reading it. Doesn't know who writes it, or when it is looked at again.
"""

from collections.abc import Iterator
from pathlib import Path

from jupiterd.formats import printable


class LogTail:
    """One file; each look gives the whole lines that have come since the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._read_bytes = 0
        self._begun = b""

    def last(self, count: int) -> list[str]:
        """Return the last so many lines, those of the part before it included; then look on."""
        before = self._path.with_name(f"{self._path.name}.1")
        lines = [*self._lines(self._new_bytes())]
        if len(lines) < count and before.exists():
            lines = [*self._decoded(before.read_bytes().splitlines()), *lines]
        return lines[-count:] if count else []

    def new(self) -> list[str]:
        """Return what has come since."""
        return list(self._lines(self._new_bytes()))

    def _new_bytes(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                found = self._path.stat()
                if found.st_ino != self._inode or found.st_size < self._read_bytes:
                    self._inode, self._read_bytes, self._begun = found.st_ino, 0, b""
                file.seek(self._read_bytes)
                data = file.read()
        except FileNotFoundError:  # just being exchanged
            return b""
        self._read_bytes += len(data)
        return data

    def _lines(self, data: bytes) -> Iterator[str]:
        """Yield whole lines; what isn't one yet waits for the rest."""
        *whole, self._begun = (self._begun + data).split(b"\n")
        return self._decoded(whole)

    @staticmethod
    def _decoded(lines: list[bytes]) -> Iterator[str]:
        return (printable(line.decode("utf-8", "replace")) for line in lines)
