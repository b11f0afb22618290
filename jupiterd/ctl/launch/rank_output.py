"""The output of a script's ranks as one stream of whole lines, each with its rank as a prefix.

Owns splitting bytes into lines, and the last lines of ranks that aren't shown. Doesn't know where
the bytes come from; gets a function that writes the lines.
"""

from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from jupiterd.processes.scripts import events

MAX_LINE_BYTES: Final = 1 << 16
"""Longer lines are split, so that a rank that never ends a line doesn't fill the memory."""

TAIL_LINES: Final = 20

Write = Callable[[bytes, bool], None]
"""Gets a line with its line ending, and whether it goes to standard error."""


class RankOutput:
    """Takes the output of every rank, and writes the lines of the ranks that are shown."""

    def __init__(self, write: Write, shown: Collection[int] | None = (0,)) -> None:
        """Store the function that writes lines, and the ranks that are shown; None: all."""
        self._write = write
        self._shown = shown
        self._begun: dict[tuple[int, bool], bytes] = {}
        self._tails: dict[int, deque[bytes]] = {}

    def is_shown(self, rank: int) -> bool:
        """Return whether this rank's lines are written."""
        return self._shown is None or rank in self._shown

    def take(self, rank: int, data: bytes, *, is_error: bool) -> None:
        """Write the lines that are complete now, and keep the rest."""
        rest = self._begun.pop((rank, is_error), b"") + data
        *lines, rest = _cut(rest)
        for line in lines:
            self._line(rank, line, is_error=is_error)
        if rest:
            self._begun[rank, is_error] = rest

    def finish(self, rank: int) -> None:
        """Write the unfinished lines of a rank that has ended."""
        for is_error in (False, True):
            if rest := self._begun.pop((rank, is_error), b""):
                self._line(rank, rest + b"\n", is_error=is_error)

    def settle(self) -> None:
        """Do nothing: this class writes whole lines only."""

    def resume(self) -> None:
        """Do nothing, like `settle`."""

    def tail(self, rank: int) -> list[str]:
        """Return the last lines, at most TAIL_LINES, of a rank that isn't shown."""
        return [line.decode("utf-8", "replace").rstrip() for line in self._tails.get(rank, ())]

    def _line(self, rank: int, line: bytes, *, is_error: bool) -> None:
        if self.is_shown(rank):
            self._write(prefix(rank) + line, is_error)
        else:
            self._tails.setdefault(rank, deque(maxlen=TAIL_LINES)).append(line)


def prefix(rank: int) -> bytes:
    """Return the prefix of each line of a rank."""
    match rank:
        case events.STORE_RANK:
            return b"[store] "
        case events.NOTICE_RANK:
            return b"jupiterctl: "
        case _:
            return b"[rank %d] " % rank


def _cut(data: bytes) -> list[bytes]:
    r"""Return complete lines, then the unfinished one; lines of a progress bar end with \r."""
    lines = data.splitlines(keepends=True) or [b""]
    found: list[bytes] = []
    for line in lines:
        while len(line) > MAX_LINE_BYTES:
            found.append(line[:MAX_LINE_BYTES] + b"\n")
            line = line[MAX_LINE_BYTES:]  # noqa: PLW2901 - the rest of it
        found.append(line)
    if found[-1].endswith(b"\r"):  # the \n of \r\n may follow
        return found
    return [*found, b""] if found[-1].endswith(b"\n") else found
