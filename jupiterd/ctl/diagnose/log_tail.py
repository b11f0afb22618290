"""Follows the end of a log file that grows and is rotated.

Owns reading it. Doesn't know who writes it, or when it is read again.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jupiterd.formats import printable


class FollowedLog:
    """One log file; each call returns the complete lines since the call before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = path.with_name(f"{path.name}.1")
        self._inode = 0
        self._read_bytes = 0
        self._begun = b""

    def last(self, count: int) -> list[str]:
        """Return the last `count` lines, also of the rotated file; `new` continues after them."""
        lines = [*self._lines(self._new_bytes())]
        if len(lines) < count:
            with suppress(OSError):  # usually there is no rotated file
                lines = [*self._decoded(self._before.read_bytes().splitlines()), *lines]
        return lines[-count:] if count else []

    def new(self) -> list[str]:
        """Return the complete lines that were written since the last call."""
        return list(self._lines(self._new_bytes()))

    def _new_bytes(self) -> bytes:
        """Return the bytes written since the last call; first the rest of a file rotated meanwhile.

        Identifies the file by its inode, because its name means another file after a rotation.
        """
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                rest = b"" if found.st_ino == self._inode else self._rest_of_rotated_file()
                if found.st_ino != self._inode or found.st_size < self._read_bytes:
                    self._inode, self._read_bytes = found.st_ino, 0
                file.seek(self._read_bytes)
                data = file.read()
        except FileNotFoundError:  # just being rotated
            return b""
        self._read_bytes += len(data)
        return rest + data

    def _rest_of_rotated_file(self) -> bytes:
        """Return the rest of the file that was read so far, to which an unfinished line belongs."""
        with suppress(OSError), self._before.open("rb") as file:
            if os.fstat(file.fileno()).st_ino == self._inode:
                file.seek(self._read_bytes)
                return file.read()
        self._begun = b""
        return b""

    def _lines(self, data: bytes) -> Iterator[str]:
        """Return the complete lines; keep an unfinished one for the next call."""
        *whole, self._begun = (self._begun + data).split(b"\n")
        return self._decoded(whole)

    @staticmethod
    def _decoded(lines: list[bytes]) -> Iterator[str]:
        return (printable(line.decode("utf-8", "replace").expandtabs()) for line in lines)
