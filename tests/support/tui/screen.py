"""What stands on a terminal after the bytes that a program wrote to it.

Owns the little that Textual's output needs: moving, writing and styles. Doesn't know where the
bytes come from. Everything else that terminals can do is left out of account.
"""

import codecs
import re

from rich.cells import cell_len

_PIECE = re.compile(
    r"\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]P^_].*?(?:\x1b\\|\x07)"
    r"|\x1b[ -/]*[0-OQ-WYZ`-~\\]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f])"
    r"|(?P<text>[^\x00-\x1f]+)",
    re.DOTALL,
)
BLANK = (" ", "")

Written = tuple[str, str]
"""A character, and the parameters of its style as they came."""


class Screen:
    """A grid of characters, as a terminal would show them."""

    def __init__(self, columns: int, lines: int) -> None:
        self._columns, self._lines = columns, lines
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left_over = ""
        self._style = ""
        self._x = self._y = 0
        self._grid: list[list[Written]] = []
        self._clear()

    def feed(self, data: bytes) -> None:
        """Take what a program wrote; it may end anywhere."""
        text = self._left_over + self._decoder.decode(data)
        at = 0
        while (piece := _PIECE.match(text, at)) is not None:
            self._take(piece)
            at = piece.end()
        self._left_over = text[at:]

    @property
    def text(self) -> str:
        """Return what can be read."""
        return "\n".join("".join(char for char, _ in line) for line in self._grid)

    def style_of(self, words: str) -> str:
        """Return the style in which the first of these words are written."""
        for line in self._grid:
            at = "".join(char or "\0" for char, _ in line).find(words)
            if at >= 0:
                return line[at][1]
        raise AssertionError(f"{words!r} is not on the screen:\n{self.text}")

    def _take(self, piece: re.Match[str]) -> None:
        if piece["final"]:
            self._obey(piece["final"], piece["parameters"])
        elif piece["control"] == "\r":
            self._x = 0
        elif piece["control"] == "\n":
            self._x, self._y = 0, min(self._y + 1, self._lines - 1)
        elif piece["text"]:
            self._write(piece["text"])

    def _obey(self, final: str, parameters: str) -> None:
        if final == "m" and parameters[:1] not in {">", "?"}:
            self._style = "" if parameters in {"", "0"} else parameters
        elif final in "Hf":
            y, _, x = parameters.partition(";")
            self._x, self._y = int(x or 1) - 1, int(y or 1) - 1
        elif final == "J" and parameters == "2":
            self._clear()

    def _write(self, text: str) -> None:
        for char in text:
            width = cell_len(char)
            for char_or_nothing in (char, *[""] * (width - 1))[:width]:
                if self._x < self._columns and self._y < self._lines:
                    self._grid[self._y][self._x] = (char_or_nothing, self._style)
                self._x += 1

    def _clear(self) -> None:
        self._grid = [[BLANK] * self._columns for _ in range(self._lines)]
