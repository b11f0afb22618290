"""Two answers side by side, while both are being written.

Pure. Owns breaking text into rows of a width, and which rows can no longer change: those are
printed for good, the others may be drawn again. Doesn't know terminals, or who writes.
"""

from collections.abc import Sequence
from itertools import zip_longest

from jupiterd.formats import columns_of

LEAST_COLUMN = 28
"""Columns. Two narrower columns are harder to read than one answer below the other."""

TAB = "    "


class WrappedText:
    """Text that grows, in rows of at most `width` columns; only the last row can still change.

    It breaks at spaces, and within a word that is longer than a row. Indentation stays.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._columns = 0
        self.rows: list[str] = []
        """The rows that don't change any more."""
        self.last = ""

    def feed(self, text: str) -> None:
        """Take more text; how it is split makes no difference."""
        for character in text.replace("\t", TAB):
            self._put(character)

    @property
    def all_rows(self) -> list[str]:
        """Return every row, with the last one unless it is empty."""
        return [*self.rows, self.last] if self.last else self.rows

    def _put(self, character: str) -> None:
        width = columns_of(character) if character != "\n" else 0
        if character == "\n" or (character == " " and self._columns + 1 > self._width):
            self._begin_row("")
            return
        if width and self._columns + width > self._width:
            self._wrap()
        self.last += character
        self._columns += width

    def _wrap(self) -> None:
        at = self.last.rfind(" ")
        if at > 0 and self.last[:at].strip():
            rest, self.last = self.last[at + 1 :], self.last[:at]
        else:
            rest = ""
        self._begin_row(rest)

    def _begin_row(self, rest: str) -> None:
        self.rows.append(self.last)
        self.last, self._columns = rest, width_of(rest)


class SideBySide:
    """Two columns with a line between them."""

    def __init__(self, columns: int, line: str = "\u2502") -> None:
        """Make columns for a terminal of `columns`; `line` is drawn between them."""
        self._gap = f" {line} "
        # The last column stays free: some terminals begin a new row when something stands there.
        self.width = (columns - 1 - len(self._gap)) // 2
        self._sides = (WrappedText(self.width), WrappedText(self.width))
        self._ended = [False, False]
        self._printed = 0

    @staticmethod
    def fits(columns: int) -> bool:
        """Say whether a terminal of so many columns has room for two."""
        return SideBySide(columns).width >= LEAST_COLUMN

    def heading(self, titles: Sequence[str]) -> str:
        """Return the row with what stands above each column."""
        left, right = (cut(title, self.width) for title in titles)
        return self._row(left, right)

    def feed(self, side: int, text: str) -> None:
        """Take more of the text of one side, 0 or 1."""
        self._sides[side].feed(text)

    def end(self, side: int) -> None:
        """Nothing more comes on that side."""
        self._ended[side] = True

    def finished(self) -> list[str]:
        """Return the rows that became final since the last call."""
        final = min(
            len(side.rows) if not ended else max(len(each.all_rows) for each in self._sides)
            for side, ended in zip(self._sides, self._ended, strict=True)
        )
        rows = self._rows(self._printed, final)
        self._printed = max(self._printed, final)
        return rows

    def unfinished(self, most: int) -> list[str]:
        """Return the rows below those, at most so many: where the slower side writes."""
        return self._rows(self._printed, self._printed + most)

    def _rows(self, begin: int, end: int) -> list[str]:
        left, right = (side.all_rows[begin:end] for side in self._sides)
        return [self._row(*pair) for pair in zip_longest(left, right, fillvalue="")]

    def _row(self, left: str, right: str) -> str:
        padding = " " * (self.width - width_of(left))
        return f"{left}{padding}{self._gap}{right}".rstrip()


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    return sum(map(columns_of, text))


def cut(text: str, width: int) -> str:
    """Return the beginning of a text that fits into `width` columns."""
    while width_of(text) > width:
        text = text[:-1]
    return text
