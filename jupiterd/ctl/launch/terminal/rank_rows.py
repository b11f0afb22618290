"""The last rows that one rank draws on its terminal: progress bars, and the current line.

Owns the effect of carriage returns, line feeds and the escape sequences of progress bars (tqdm,
rich). Doesn't know other ranks, or where the rows are shown. Text after a carriage return replaces
its whole row: bars are drawn like that, and pad shorter texts. A backspace deletes the character
before it: spinners then write another one. Other sequences are dropped, except colours.
"""

import codecs
import re
from typing import Final

from jupiterd.formats import columns_of

MAX_ROWS: Final = 64
MAX_ROW_CHARACTERS: Final = 1 << 13

_TOKENS: Final = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f]+|\t)|(?P<end>\n)|(?P<begin>\r)|(?P<back>\x08+)"
    r"|\x1b\[(?P<given>[0-?]*)[ -/]*(?P<command>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b(?:[ -/]+[0-~]|[0-Z\\^-~])|[\x00-\x1a\x1c-\x1f\x7f]"
)
_UNFINISHED: Final = re.compile(r"\x1b(?:[ -/]+|\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)?\Z")
_COLOUR: Final = re.compile(r"(\x1b\[[0-?]*[ -/]*m)")
_UPWARDS: Final = re.compile(r"(?:\r|\n(?=\x1b\[A)|\x1b\[[0-9;?]*[A-Zl-m])*")
_UP: Final = re.compile(r"\x1b\[([0-9]*)[AF]")


class RankRows:
    """The rows of one rank that may still be redrawn; rows above them are returned as finished."""

    def __init__(self) -> None:
        self.rows = [""]
        self._at = 0
        self._is_overwritten = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def is_empty(self) -> bool:
        """Return whether all rows are empty."""
        return not any(self.rows)

    def take(self, data: bytes, *, is_soon: bool) -> list[str]:
        """Draw what the rank has printed; return the rows that can't be redrawn any more.

        is_soon: it follows the previous output at once, so no row counts as finished yet
        """
        text = self._rest + self._decoder.decode(data)
        cut = _UNFINISHED.search(text)
        self._rest = text[cut.start() :] if cut is not None and len(cut[0]) < MAX_ROWS else ""
        text = text[: len(text) - len(self._rest)]
        finished = [] if is_soon else self._scrolled_out(self._at - _rows_up(text))
        for token in _TOKENS.finditer(text):
            self._draw(token)
            if len(self.rows) > MAX_ROWS:
                finished += self._scrolled_out(len(self.rows) - MAX_ROWS)
        return finished

    def crop(self, most: int) -> list[str]:
        """Remove and return the rows above the last `most`, but only rows above the current one."""
        return self._scrolled_out(min(len(self.rows) - most, self._at))

    def end(self) -> list[str]:
        """Return all rows that are left, without empty ones at the end; start with an empty row."""
        rows, self.rows = self.rows, [""]
        self._at, self._is_overwritten = 0, False
        while rows and not rows[-1].strip():  # an erased bar, or a new row
            rows.pop()
        return rows

    def _scrolled_out(self, count: int) -> list[str]:
        given, self.rows = self.rows[: max(0, count)], self.rows[max(0, count) :]
        self._at -= len(given)
        return given

    def _draw(self, token: re.Match[str]) -> None:
        if token["text"]:
            self._write(token["text"])
        elif token["end"]:
            self._move(1)
        elif token["begin"]:
            self._is_overwritten = True
        elif token["back"]:
            self._take_back(len(token["back"]))
        elif token["command"]:
            self._apply(token["command"], token["given"], token[0])

    def _apply(self, command: str, given: str, whole: str) -> None:
        match command:
            case "m":
                self._write(whole)
            case "A" | "F":
                self._move(-_number(given))
            case "B" | "E":
                self._move(_number(given))
            case "K" if given == "2" or self._is_overwritten:
                self.rows[self._at] = ""
            case "J" if given in {"", "0"}:
                del self.rows[self._at + 1 :]
            case "G" if given in {"", "1"}:
                self._is_overwritten = True
            case _:
                pass

    def _write(self, text: str) -> None:
        """Write text or one colour; text that is too long for a row continues in the next one."""
        while text:
            before = "" if self._is_overwritten else self.rows[self._at]
            self._is_overwritten = False
            if len(before) >= MAX_ROW_CHARACTERS:
                self._move(1)
                continue
            room = len(text) if text[0] == "\x1b" else MAX_ROW_CHARACTERS - len(before)
            self.rows[self._at] = before + text[:room]
            text = text[room:]

    def _take_back(self, count: int) -> None:
        if self._is_overwritten:
            return
        pieces = _COLOUR.split(self.rows[self._at])
        for number in range(len(pieces) - 1, -1, -2):  # odd pieces are colours
            remaining = pieces[number][: max(0, len(pieces[number]) - count)]
            count -= len(pieces[number]) - len(remaining)
            pieces[number] = remaining
        self.rows[self._at] = "".join(pieces)

    def _move(self, count: int) -> None:
        self._at = max(0, self._at + count)
        self.rows += [""] * (self._at + 1 - len(self.rows))
        self._is_overwritten = bool(self.rows[self._at])


def _number(given: str) -> int:
    return min(int(given), MAX_ROWS) if given.isdecimal() and int(given) else 1


def _rows_up(text: str) -> int:
    """Return how many rows a text moves up before it writes anything."""
    begin = _UPWARDS.match(text)
    return sum(_number(up) for up in _UP.findall(begin[0] if begin else ""))


def visible(row: str, width: int) -> str:
    """Return the start of a row that fits into `width` columns; reset its colours at the end."""
    shown, left = list[str](), width
    for piece in _COLOUR.split(row):
        if piece.startswith("\x1b"):
            shown.append(piece)
            continue
        for character in piece.expandtabs():
            left -= columns_of(character)
            if left >= 0:
                shown.append(character)
    return "".join(shown) + ("\x1b[0m" if "\x1b" in row else "")
