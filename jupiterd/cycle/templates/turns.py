"""The turns of a generated text: its questions, and the answer to each, without their labels.

Owns which templates write such pairs, and where a question ends. What it returns are rows of
instruction data, for models that are talked to. Doesn't know chat templates or tokens.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from jupiterd.cycle.data.instruction_rows import ASSISTANT, USER, ChatMessage
from jupiterd.cycle.templates.answer_forms import (
    ANSWER_LABEL,
    MIN_EXERCISE_WORDS,
    PARAGRAPH_END,
    QUESTION_END,
    SOLUTION_LABEL,
)

_MARKS: Final = " \t\n#*>"
"""Around what is asked."""
_ASKING = re.compile(
    r"^[ \t#*_>-]*(?:q|questions?|preguntas?|fragen?|pergunta|domanda|exercise|ejercicio|exercice|"
    r"\u00fcbung|exerc\u00edcio|esercizio|problem)[ \t]*\d*[*_]*[ \t]*(?:[:.]|\n|$)[*_]*\s*|"
    r"^[ \t#*_>]*\d+[.)][ \t]+(?=[^\n]*[?\uff1f\u061f][*_]*\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""In front of what is asked."""
_ANSWERING = re.compile(
    r"\A[ \t#*_]*(?:answers?|respuestas?|antwort|r\u00e9ponse|resposta|risposta)[*_ \t]*\n|"
    r"\A[*_]+(?=\s)",
    re.IGNORECASE,
)
"""A heading of an answer, or what is left of the marks around its label."""


def turns_of(kind: str, text: str) -> tuple[ChatMessage, ...]:
    """Return questions and answers by turns; nothing where the text isn't such a pair.

    kind: the template that it was written for
    """
    parted = _FORMS.get(kind)
    pairs = parted(text) if parted is not None else ()
    return tuple(
        message
        for question, answer in pairs
        if question and answer
        for message in (ChatMessage(USER, question), ChatMessage(ASSISTANT, answer))
    )


@dataclass
class _Pair:
    """A question with its answer, as far as they were read."""

    asked: list[str] = field(default_factory=list[str])
    answer: list[str] = field(default_factory=list[str])
    is_asked: bool = False
    """The question has come to its end."""

    def parts(self) -> tuple[str, str]:
        return _question("\n".join(self.asked)), _answer("\n".join(self.answer))


def _questions(text: str) -> Iterator[tuple[str, str]]:
    pair, is_after_gap = _Pair(), False
    for line in ANSWER_LABEL.sub("\n", text).split("\n"):
        ends = QUESTION_END.search(line) is not None
        is_new = _ASKING.match(line) is not None or (ends and is_after_gap)
        if pair.is_asked and is_new and any(each.strip() for each in pair.answer):
            yield pair.parts()
            pair = _Pair()
        is_more = not pair.is_asked or (ends and not is_after_gap and not pair.answer)
        (pair.asked if is_more else pair.answer).append(line)
        pair.is_asked = pair.is_asked or ends
        is_after_gap = not line.strip()
    yield pair.parts()


def _exercise(text: str) -> Iterator[tuple[str, str]]:
    for found in SOLUTION_LABEL.finditer(text):
        question = text[: found.start()]
        if len(question.split()) >= MIN_EXERCISE_WORDS:
            yield _question(question), _answer(text[found.end() :])
            return


def _problem(text: str) -> Iterator[tuple[str, str]]:
    question, *solution = PARAGRAPH_END.split(text)
    yield _question(question), _answer("\n\n".join(solution))


def _question(text: str) -> str:
    stripped = text.strip()
    label = _ASKING.match(stripped)
    return (stripped[label.end() :] if label else stripped).strip(_MARKS)


def _answer(text: str) -> str:
    return _ANSWERING.sub("", text.strip()).strip()


_FORMS: Final[Mapping[str, Callable[[str], Iterator[tuple[str, str]]]]] = {
    "question_answer": _questions,
    "faq": _questions,
    "exercise": _exercise,
    "worked_problem": _problem,
}

PAIRED: Final = frozenset(_FORMS)
"""The templates whose texts are questions and answers."""
