"""The end of a log file that grows and is exchanged for a new one.

Owns reading it. Doesn't know who writes it, or when it is looked at again.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jupiterd.formats import printable


class FollowedLog:
    """One file; each look gives the whole lines that have come since the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = path.with_name(f"{path.name}.1")
        self._inode = 0
        self._read_bytes = 0
        self._begun = b""

    def last(self, count: int) -> list[str]:
        """Return the last `count` lines, also of the rotated file; `new` goes on after them."""
        lines = [*self._lines(self._new_bytes())]
        if len(lines) < count:
            with suppress(OSError):  # mostly there is none
                lines = [*self._decoded(self._before.read_bytes().splitlines()), *lines]
        return lines[-count:] if count else []

    def new(self) -> list[str]:
        """Return the whole lines that were written since the last call."""
        return list(self._lines(self._new_bytes()))

    def _new_bytes(self) -> bytes:
        """Return the bytes written since the last call; first the rest of a file rotated meanwhile.

        It identifies the file by its inode: after a rotation the same name means another file.
        """
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                rest = b"" if found.st_ino == self._inode else self._rest_of_rotated_file()
                if found.st_ino != self._inode or found.st_size < self._read_bytes:
                    self._inode, self._read_bytes = found.st_ino, 0
                file.seek(self._read_bytes)
                data = file.read()
        except FileNotFoundError:  # just being exchanged
            return b""
        self._read_bytes += len(data)
        return rest + data

    def _rest_of_rotated_file(self) -> bytes:
        """Return the end of the file that was read so far; a line that it had begun goes on."""
        with suppress(OSError), self._before.open("rb") as file:
            if os.fstat(file.fileno()).st_ino == self._inode:
                file.seek(self._read_bytes)
                return file.read()
        self._begun = b""
        return b""

    def _lines(self, data: bytes) -> Iterator[str]:
        """Yield whole lines; what isn't one yet waits for the rest."""
        *whole, self._begun = (self._begun + data).split(b"\n")
        return self._decoded(whole)

    @staticmethod
    def _decoded(lines: list[bytes]) -> Iterator[str]:
        return (printable(line.decode("utf-8", "replace").expandtabs()) for line in lines)
