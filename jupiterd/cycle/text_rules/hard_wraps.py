"""Lines that a layout has cut, in plain text and pages of PDF, put together to paragraphs.

Owns where a paragraph goes on in the next line. Doesn't know markup: there its own rules say so.

A program that fills lines breaks one where the next word wouldn't fit. So a line is full where it
and the next line's first word come to its neighbours' width, and then the next line goes on with
it. Verse, code, lists and tables break their lines before that, and stay as they are.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from jupiterd.cycle.text_rules.word_breaks import TextWords, before_next


@dataclass(frozen=True)
class WrapColumn:
    """How a kind of layout fills its lines."""

    least_chars: int
    """A narrower column isn't one of prose."""
    fill: float
    """Share of the width that a full line and the next word come to at least."""
    sentence_fill: float
    """The same of a line that ends with a sentence: its paragraph may end there, too."""
    crosses_pages: bool
    """May a sentence go on behind one blank line, as on the next page?"""


PLAIN_TEXT = WrapColumn(least_chars=40, fill=0.9, sentence_fill=0.96, crosses_pages=False)
PDF_PAGES = WrapColumn(least_chars=22, fill=0.8, sentence_fill=0.94, crosses_pages=True)

MAX_COLUMN_CHARS = 160
"""Wider lines are paragraphs already."""

MIN_FULL_LINES = 0.6
"""Of the lines around one, for it to be taken for one of a paragraph."""

MAX_CAPITAL_LINES = 0.85
"""Of the lines around one: more that begin with a capital are verse, or a list of names."""

MAX_CODE_LINES = 0.3
"""Of the lines around one."""

_NEIGHBOURS = 5

_BULLET = re.compile(r"\s*[\u2022\u2023\u25aa\u25cf\u00b7*+-]\s")
_NUMBER = re.compile(r"\s*(?:\(?(?:\d{1,3}|[A-Za-z])[.)]|\[\d+\])\s")
"""Of an item, where there are several; else a sentence may have ended so."""
_DASH = re.compile(r"\s*[\u2013\u2014]\s")
_APART = re.compile(r"\S[^\S\n]{4,}\S|\S\t+\S|^\s*[|+>]|\|$|\.{5}|_{4}|-{4}|={3}|\*{3}")
_CODE = re.compile(
    r"[{}\\]$|\);$|^\s*(?:\$|#|//|/\*|>>>|<[/!?\w]|@\w)"
    r"|^\s*[\w.]+\s*(?:[:=]=|=)\s*\S+$"
)
_SENTENCE_END = re.compile(r"[.!?:\u2026\u3002\uff01\uff1f][\"'\u2019\u201d\u00bb)\]]*$")
_GAP = re.compile(r"(?<=\S)[^\S\n]{2,}(?=\S)")


@dataclass(frozen=True)
class _Row:
    """A line that isn't blank, and how many blank ones stand before it."""

    line: str
    blanks: int


def unwrapped(text: str, column: WrapColumn) -> str:
    """Return the text with the lines of each paragraph joined.

    Args:
        text: without blanks at the ends of its lines.
        column: what filled them.
    """
    rows = list(_rows(text.split("\n")))
    goes_on = _goes_on(rows, column) if rows else []
    if not any(goes_on):
        return text
    vocabulary = TextWords.of(text)
    pieces = ["\n" * rows[0].blanks]
    for number, row in enumerate(rows):
        is_joined = goes_on[number] or goes_on[number + 1]
        line = _GAP.sub(" ", row.line) if is_joined else row.line
        line = line.lstrip() if goes_on[number] else line
        if goes_on[number + 1]:
            pieces.append(before_next(line, rows[number + 1].line.lstrip(), vocabulary))
        else:
            blanks = rows[number + 1].blanks if number + 1 < len(rows) else 0
            pieces += (line, "\n" * (1 + blanks))
    pieces[-1] = text[len(text.rstrip("\n")) :]
    return "".join(pieces)


def _rows(lines: Sequence[str]) -> Iterator[_Row]:
    blanks = 0
    for line in lines:
        if line:
            yield _Row(line, blanks)
            blanks = 0
        else:
            blanks += 1


def _goes_on(rows: Sequence[_Row], column: WrapColumn) -> list[bool]:
    """Say of each row whether it goes on with the one before; one more `False` stands at the end.

    What is said of a break between two rows has the number of the second.
    """
    full = [False, *(_is_full(rows, number, column) for number in range(1, len(rows)))]
    capital = [row.line.lstrip()[0].isupper() for row in rows]
    code = [_CODE.search(row.line) is not None for row in rows]
    sums = tuple(list(accumulate(marks, initial=0)) for marks in (full, capital, code))
    blocks = _blocks(rows)
    found: list[bool] = []
    for number, row in enumerate(rows):
        first, last = max(blocks[number][0] + 1, number - 4), min(blocks[number][1], number + 5)
        if number == 0 or row.blanks:
            found.append(column.crosses_pages and number > 0 and _crosses_page(rows, number))
            continue
        fulls, capitals, codes = (total[last] - total[first] for total in sums)
        breaks = last - first
        is_paragraph = (
            fulls >= MIN_FULL_LINES * breaks
            and (capitals < MAX_CAPITAL_LINES * breaks or breaks < 3)
            and codes <= 1 + MAX_CODE_LINES * breaks
        )
        found.append(is_paragraph and _is_continued(rows, number, is_full=full[number]))
    return [*found, False]


def _blocks(rows: Sequence[_Row]) -> list[tuple[int, int]]:
    """Return for each row where its block of rows without blank lines begins, and its end."""
    starts = [number for number, row in enumerate(rows) if number == 0 or row.blanks]
    ends = [*starts[1:], len(rows)]
    return [block for block in zip(starts, ends, strict=True) for _ in range(block[1] - block[0])]


def _width(rows: Sequence[_Row], number: int) -> int:
    """Return the width of the column around a row: the longest line but one of its neighbours."""
    lengths = sorted(
        len(row.line) for row in rows[max(0, number - _NEIGHBOURS) : number + _NEIGHBOURS + 1]
    )
    return lengths[-2] if len(lengths) > 3 else lengths[-1]


def _is_full(rows: Sequence[_Row], number: int, column: WrapColumn) -> bool:
    """Say whether the row before left no room for this one's first word."""
    width = _width(rows, number - 1)
    if not column.least_chars <= width <= MAX_COLUMN_CHARS:
        return False
    before, first = rows[number - 1].line, rows[number].line.split(maxsplit=1)[0]
    fill = column.sentence_fill if _SENTENCE_END.search(before) else column.fill
    return len(before) + 1 + len(first) >= fill * width


def _is_continued(rows: Sequence[_Row], number: int, *, is_full: bool) -> bool:
    before, line = rows[number - 1].line, rows[number].line
    if (
        _BULLET.match(line)
        or _is_numbered(rows, number)
        or _APART.search(before)
        or _APART.search(line)
    ):
        return False
    is_within = not _SENTENCE_END.search(before)
    if _DASH.match(line):
        return is_full and is_within
    if not is_within and _indentation(line) > _indentation(before):
        return False  # the next paragraph's first line
    return is_full or (is_within and line.lstrip()[0].islower())


def _is_numbered(rows: Sequence[_Row], number: int) -> bool:
    if not _NUMBER.match(rows[number].line):
        return False
    near = rows[max(0, number - _NEIGHBOURS) : number + _NEIGHBOURS + 1]
    return sum(_NUMBER.match(row.line) is not None for row in near) > 1


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _crosses_page(rows: Sequence[_Row], number: int) -> bool:
    before, line = rows[number - 1].line, rows[number].line
    return rows[number].blanks == 1 and line[0].islower() and not _SENTENCE_END.search(before)
