"""The output of ranks on a terminal: progress bars move as without a launcher, separately per rank.

Owns the lower end of the terminal, where the last rows of each rank are shown while they may still
be redrawn; finished rows scroll up from there. Doesn't know where the output comes from.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection
from typing import Final

from jupiterd.ctl.launch.rank_output import RankOutput, Write, prefix
from jupiterd.ctl.launch.terminal.rank_rows import RankRows, visible

IN_ONE_GO_S: Final = 0.05
"""Seconds within which output belongs to the output before it: bars are drawn in several pieces."""

MIN_ROWS: Final = 2
MIN_COLUMNS: Final = 20

Window = Callable[[], tuple[int, int]]
"""Returns the rows and columns of the terminal."""


def terminal_size() -> tuple[int, int]:
    """Return the rows and columns of our own terminal."""
    columns, rows = shutil.get_terminal_size()
    return max(MIN_ROWS, rows), max(MIN_COLUMNS, columns)


def can_draw() -> bool:
    """Return whether our terminal takes sequences that move its cursor."""
    return os.environ.get("TERM", "dumb") != "dumb"


class TerminalOutput(RankOutput):
    """Shows each rank as its own terminal would; keeps the last lines of those not shown."""

    def __init__(
        self,
        write: Write,
        window: Window,
        shown: Collection[int] | None = (0,),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the writer, the terminal's size, and the ranks that are shown; None: all."""
        super().__init__(write, shown)
        self._window = window
        self._now_s = now_s
        self._ranks: dict[int, RankRows] = {}
        self._last_output_s: dict[int, float] = {}
        self._height = 0

    def take(self, rank: int, data: bytes, *, is_error: bool) -> None:
        """Draw a rank's output below the finished rows."""
        if not self.is_shown(rank):
            super().take(rank, data, is_error=is_error)
            return
        rows = self._ranks.setdefault(rank, RankRows())
        before_s, now_s = self._last_output_s.get(rank, float("-inf")), self._now_s()
        self._last_output_s[rank] = now_s
        finished = rows.take(data, is_soon=now_s - before_s < IN_ONE_GO_S)
        finished += rows.crop(max(1, (self._window()[0] - 1) // len(self._ranks)))
        self._draw(self._lines(rank, finished))

    def finish(self, rank: int) -> None:
        """Write the last rows of a rank that has ended as finished rows."""
        if (rows := self._ranks.pop(rank, None)) is not None:
            self._draw(self._lines(rank, rows.end()))
        else:
            super().finish(rank)

    def settle(self) -> None:
        """Erase the rows that may still be redrawn, so that something else can be printed."""
        self._erase("")

    def resume(self) -> None:
        """Redraw those rows below what was printed since `settle`."""
        self._draw("")

    def _draw(self, finished: str) -> None:
        height, width = self._window()
        live = [
            prefix(rank).decode() + visible(row, width - len(prefix(rank)))
            for rank, rows in sorted(self._ranks.items())
            if not rows.is_empty
            for row in _without_last_empty(rows.rows)
        ][-max(1, height - 1) :]
        self._erase(finished + "\n".join(live))
        self._height = len(live)

    def _erase(self, and_write: str) -> None:
        """Erase the rows that may still be redrawn, and write the text in their place."""
        up = f"\x1b[{self._height - 1}A" if self._height > 1 else ""
        away = f"\r{up}\x1b[J" if self._height else ""
        self._height = 0
        if away or and_write:
            self._write((away + and_write).encode(), False)  # noqa: FBT003 - a callback's signature

    def _lines(self, rank: int, rows: list[str]) -> str:
        return "".join(f"{prefix(rank).decode()}{_whole(row)}\n" for row in rows)


def _whole(row: str) -> str:
    return row + ("\x1b[0m" if "\x1b" in row else "")


def _without_last_empty(rows: list[str]) -> list[str]:
    return rows[:-1] if len(rows) > 1 and not rows[-1] else rows
