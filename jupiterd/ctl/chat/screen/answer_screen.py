"""Shows answers while they are written: one, two in columns, or one below the other.

Owns what goes to the output, and drawing rows again that can still change. Doesn't know where the
text comes from. Nothing that a model wrote steers the terminal (`shown_text`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from jupiterd.ctl.chat.screen.columns import SideBySide, WrappedText, cut
from jupiterd.ctl.chat.screen.shown_text import ShownText, shown_text

DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
CLEAR_TO_END_OF_ROW, CLEAR_BELOW = "\x1b[K", "\x1b[J"
SPARE_ROWS = 2
"""Of a terminal's rows, free below two columns."""


@dataclass(frozen=True)
class TextOutput:
    """The output that answers go to."""

    out: TextIO
    columns: int = 80
    rows: int = 24
    is_terminal: bool = False
    has_styles: bool = False
    """Text may be dim or bold."""
    line: str = "\u2502"
    """What is drawn between columns."""

    def write(self, text: str) -> None:
        """Write at once."""
        self.out.write(text)
        self.out.flush()

    def dim(self, text: str) -> str:
        """Return text that is less important than an answer."""
        return f"{DIM}{text}{PLAIN}" if self.has_styles else text

    def bold(self, text: str) -> str:
        """Return a title."""
        return f"{BOLD}{text}{PLAIN}" if self.has_styles else text


class AnswerScreen(Protocol):
    """Where the answers to one question are shown."""

    def text(self, side: int, piece: str) -> None:
        """Show more of the answer of one side, from 0 on."""
        ...

    def end(self, side: int) -> None:
        """Nothing more comes on that side."""
        ...

    def close(self) -> None:
        """All answers have ended, or were stopped: what follows begins a row of its own."""
        ...


def answer_screen(output: TextOutput, titles: Sequence[str]) -> AnswerScreen:
    """Return the screen for the answers of models with these titles; a single one needs none."""
    fits = len(titles) == 2 and output.is_terminal and SideBySide.fits(output.columns)
    return InColumns(output, titles) if fits else OneBelowTheOther(output, titles)


class NoScreen:
    """Shows nothing: who asked for JSON gets it at the end."""

    def text(self, side: int, piece: str) -> None:
        """Do nothing."""

    def end(self, side: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class WordWrap:
    """Writes text that grows onto a terminal, and takes a word along to the next row."""

    def __init__(self, output: TextOutput) -> None:
        self._output = output
        # The last column stays free: some terminals begin a new row when something stands there.
        self._text = WrappedText(max(output.columns - 1, 2))
        self._done, self._shown = 0, ""

    def write(self, text: str) -> None:
        """Write more of it."""
        self._text.feed(text)
        rows = self._text.rows[self._done :]
        self._done += len(rows)
        written = "".join(f"{self._rest_of(row)}\n" for row in rows)
        self._output.write(written + self._rest_of(self._text.last))
        self._shown = self._text.last

    def _rest_of(self, row: str) -> str:
        """Return what makes the row, the first of what is shown after it, of what stands there."""
        shown, self._shown = self._shown, ""
        if row.startswith(shown):
            return row.removeprefix(shown)
        return f"\r{CLEAR_TO_END_OF_ROW}{row}"  # its last word goes to the next row


class OneBelowTheOther:
    """Shows the first side as it is written, and keeps what others write until it has ended."""

    def __init__(self, output: TextOutput, titles: Sequence[str]) -> None:
        self._output = output
        self._titles = titles
        self._pieces = [ShownText() for _ in titles]
        self._kept = ["" for _ in titles]
        self._ended = [False for _ in titles]
        self._shown = -1
        self._last = "\n"
        self._wrap = WordWrap(output)

    def text(self, side: int, piece: str) -> None:
        """Show it, or keep it for later."""
        self._kept[side] += self._pieces[side].feed(piece)
        self._show()

    def end(self, side: int) -> None:
        """Go on with the next side, if this was the one that is shown."""
        self._ended[side] = True
        self._show()

    def close(self) -> None:
        """Show what was kept."""
        self._ended = [True for _ in self._ended]
        self._show()
        self._end_row()

    def _show(self) -> None:
        if self._shown < 0:
            self._begin(0)
        while True:
            self._write(self._kept[self._shown])
            self._kept[self._shown] = ""
            if not self._ended[self._shown] or self._shown + 1 == len(self._titles):
                return
            self._end_row()
            self._write("\n")
            self._begin(self._shown + 1)

    def _begin(self, side: int) -> None:
        self._shown = side
        if len(self._titles) > 1:
            self._output.write(self._output.bold(f"{shown_text(self._titles[side])}:") + "\n")

    def _end_row(self) -> None:
        if self._last != "\n":
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            (self._wrap if self._output.is_terminal else self._output).write(text)
            self._last = text[-1]


class InColumns:
    """Shows two sides beside each other, each as it is written."""

    def __init__(self, output: TextOutput, titles: Sequence[str]) -> None:
        self._output = output
        self._table = SideBySide(output.columns, output.line)
        self._drawn: list[str] = []
        self._pieces = (ShownText(), ShownText())
        left, right = map(shown_text, titles)
        output.write(f"{output.bold(self._table.heading((left, right)))}\n")

    def text(self, side: int, piece: str) -> None:
        """Draw it."""
        self._table.feed(side, self._pieces[side].feed(piece))
        self._draw()

    def end(self, side: int) -> None:
        """The other side's rows need not wait for this one."""
        self._table.end(side)
        self._draw()

    def close(self) -> None:
        """Draw all rows for good."""
        for side in (0, 1):
            self._table.end(side)
        self._draw()

    def _draw(self) -> None:
        final = self._table.finished()
        changing = self._table.unfinished(max(self._output.rows - SPARE_ROWS, 1))
        if not final and changing == self._drawn:
            return
        up = f"\x1b[{len(self._drawn)}F" if self._drawn else "\r"
        rows = "".join(
            f"{cut(row, self._output.columns - 1)}{CLEAR_TO_END_OF_ROW}\n"
            for row in [*final, *changing]
        )
        self._output.write(f"{up}{rows}{CLEAR_BELOW}")
        self._drawn = changing
