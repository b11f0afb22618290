"""`jupiterctl model chat` in a terminal of its own, whose Ctrl-C reaches it.

Owns what a terminal does with lines: they scroll, and rows are written anew. Doesn't know what a
test looks for.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from rich.cells import cell_len

from tests.support.tui.screen import BLANK, Screen, Written
from tests.support.tui.terminal import Terminal, in_terminal

WITH_KEYS_OF_ITS_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class LineScreen(Screen):
    """A grid that scrolls, with what line editing and columns need beside writing."""

    def styled_rows(self) -> list[list[tuple[str, str]]]:
        """Return each row as pieces of text with their styles."""
        return [
            [("".join(char for char, _ in cells), style) for style, cells in groupby(row, _style)]
            for row in self._grid
        ]

    def _take(self, piece) -> None:
        if piece["control"] == "\n" and self._y == self._lines - 1:
            self._grid = [*self._grid[1:], [BLANK] * self._columns]
            self._x = 0
        elif piece["control"] == "\x08":
            self._x = max(self._x - 1, 0)
        else:
            super()._take(piece)

    def _write(self, text: str) -> None:
        """Begin a new row where one is full, as terminals do."""
        for char in text:
            if self._x + cell_len(char) > self._columns:
                self.feed(b"\r\n")
            super()._write(char)

    def _obey(self, final: str, parameters: str) -> None:
        match final, parameters:
            case "F", _:
                self._x, self._y = 0, max(self._y - int(parameters or 1), 0)
            case "K", "" | "0":
                self._grid[self._y][self._x :] = [BLANK] * (self._columns - self._x)
            case "J", "" | "0":
                self._grid[self._y][self._x :] = [BLANK] * (self._columns - self._x)
                for row in range(self._y + 1, self._lines):
                    self._grid[row] = [BLANK] * self._columns
            case _:
                super()._obey(final, parameters)


def _style(cell: Written) -> str:
    return cell[1]


@contextmanager
def chat_terminal(
    state_dir: Path, *arguments: str, columns: int = 80, lines: int = 30
) -> Iterator[Terminal]:
    """Run the command there; end it for certain."""
    wrapper = (sys.executable, "-S", "-E", "-c", WITH_KEYS_OF_ITS_TERMINAL)
    ctl = (sys.executable, "-m", "jupiterd.ctl.main", "--state-dir", str(state_dir))
    command = (*wrapper, *ctl, "model", "chat", *arguments)
    with in_terminal(command, LineScreen(columns, lines), columns, lines) as terminal:
        yield terminal
