"""What models answered to the same prompts, side by side in the columns of a terminal.

Pure. Owns the layout, for `cycle explain` and the dashboard. The text is that of documents and
models: control characters are replaced, so that nothing of it steers a terminal.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from jupiterd.cycle.rounds.shown_answers import (
    AnsweringModel,
    answering_models,
    looping_line,
    shown_answer,
)
from jupiterd.formats import counted, plain, printable
from jupiterd.ids import short

Document = Mapping[str, Any]

LEAST_COLUMN: Final = 22
"""Where columns would be narrower the answers stand below each other."""

PROMPT_LINES: Final = 4
ANSWER_LINES: Final = 8
"""Shown of one text at most."""

_GAP: Final = "  "
_MORE: Final = "..."
_TAB: Final = 4


class LineKind(StrEnum):
    """What a line is."""

    TITLE = "title"
    PROMPT = "prompt"
    HEAD = "head"
    ANSWER = "answer"
    NOTE = "note"


class AnswerLine(NamedTuple):
    """One line of what is shown."""

    text: str
    kind: LineKind


def answer_lines(answers: Document, columns: int, most: int) -> list[AnswerLine]:
    """Return some prompts with their answers; nothing of a round without any.

    Args:
        answers: of a document.
        columns: of the terminal; none of the lines is wider.
        most: so many prompts are shown.
    """
    rows: Sequence[Document] = answers["rows"]
    columns = max(columns, LEAST_COLUMN)
    models = answering_models(answers)
    return [
        *(AnswerLine(text, LineKind.TITLE) for text in _wrapped(_title(rows, most), columns)),
        *(AnswerLine(text, LineKind.NOTE) for text in _wrapped(looping_line(answers), columns)),
        *(AnswerLine(text, LineKind.NOTE) for text in _wrapped(_trouble(answers), columns)),
        *(line for row in rows[:most] for line in _row(row, models, columns)),
    ]


def _title(rows: Sequence[Document], most: int) -> str:
    if not rows:
        return ""
    of_all = f"{min(most, len(rows))} of {counted(len(rows), 'prompt')}"
    return f"What the models write to the same held-out text ({of_all}; nothing is decided by it)"


def _trouble(answers: Document) -> str:
    trouble = answers.get("trouble")
    return f"answers are missing: {plain(trouble)}" if trouble else ""


def _row(row: Document, models: Sequence[AnsweringModel], columns: int) -> Iterator[AnswerLine]:
    yield AnswerLine("", LineKind.ANSWER)
    for at, text in enumerate(_prompt(row, columns - 2)):
        yield AnswerLine(f"{'  ' if at else '> '}{text}", LineKind.PROMPT)
    width = (columns - len(_GAP) * (len(models) - 1)) // max(1, len(models))
    if width < LEAST_COLUMN:
        yield from _below_each_other(row, models, columns)
        return
    heads = [_filled(_wrapped(_head(each), width)[0], width) for each in models]
    yield AnswerLine(_GAP.join(heads).rstrip(), LineKind.HEAD)
    texts = [_answer(row, each, width) for each in models]
    for parts in zip_longest(*texts, fillvalue=""):
        filled = _GAP.join(_filled(part, width) for part in parts)
        yield AnswerLine(filled.rstrip(), LineKind.ANSWER)


def _below_each_other(
    row: Document, models: Sequence[AnsweringModel], columns: int
) -> Iterator[AnswerLine]:
    for each in models:
        yield AnswerLine(_wrapped(_head(each), columns)[0], LineKind.HEAD)
        for text in _answer(row, each, columns):
            yield AnswerLine(text, LineKind.ANSWER)


def _head(model: AnsweringModel) -> str:
    return f"{model.title} ({short(model.model)})"


def _prompt(row: Document, columns: int) -> list[str]:
    """Return a question's beginning, or the end of a text, where the models go on."""
    lines = _wrapped(str(row["prompt"]).rstrip(), columns)
    if row.get("is_question") or len(lines) <= PROMPT_LINES:
        return _cut(lines, PROMPT_LINES)
    return [_MORE, *lines[1 - PROMPT_LINES :]]


def _answer(row: Document, model: AnsweringModel, columns: int) -> list[str]:
    """Return an answer's first lines, with what is odd about it below them."""
    shown = shown_answer(row.get(model.role))
    note = _wrapped(f"({shown.note})", columns) if shown.note else []
    return [*_cut(_wrapped(shown.text, columns), ANSWER_LINES - len(note)), *note]


def _cut(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[: most - 1], _MORE]


def _wrapped(text: str, columns: int) -> list[str]:
    """Return a text in lines of at most so many columns; its own line ends stay."""
    lines = text.strip("\n").splitlines()
    return [part for line in lines for part in _parts(printable(line.expandtabs(_TAB)), columns)]


def _parts(line: str, columns: int) -> Iterator[str]:
    """Yield a line cut between words, or where a word is too long for any line within it."""
    rest = line.rstrip()
    while _width(rest) > columns:
        most = _fitting(rest, columns)
        blank = rest.rfind(" ", 1, most + 1)
        at = blank if blank > 0 and rest[:blank].strip() else most
        yield rest[:at].rstrip()
        rest = rest[at:].lstrip()
    yield rest


def _fitting(text: str, columns: int) -> int:
    """Return how many characters fit; at least one, so that there is an end."""
    width = 0
    for at, char in enumerate(text):
        width += _width(char)
        if width > columns:
            return max(at, 1)
    return len(text)


def _filled(text: str, columns: int) -> str:
    return text + " " * (columns - _width(text))


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for wide characters."""
    return sum(_width_of(char) for char in text)


def _width_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
