"""The form that each template asks for: questions with answers, steps, a table, a solution.

Owns what is counted of a text, and the least of it. Doesn't know what the text says.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from jupiterd.cycle.templates.refusal import Refusal, RefusedAnswer
from jupiterd.cycle.templates.tables import count_rows

MIN_ROWS: Final = 3
MIN_QUESTIONS: Final = 2
MIN_STEPS: Final = 2
MIN_PARAGRAPHS: Final = 2
MIN_ANSWER_WORDS: Final = 12
"""Of all answers together, beside their questions."""
MIN_EXERCISE_WORDS: Final = 5
MIN_SOLUTION_WORDS: Final = 12
MAX_SUMMARY_SHARE: Final = 0.8
"""Of the words of what is summarised."""

QUESTION_END: Final = re.compile(r"[?\uff1f\u061f][\"'\u201d\u00bb*_)]*\s*$", re.MULTILINE)
"""Behind a question, at the end of its line."""
ANSWER_LABEL: Final = re.compile(
    r"(?:^|(?<=[?\uff1f\u061f\"*_ ]))[ \t#*_>-]*(?:answer|respuesta|antwort|r\u00e9ponse|resposta|"
    r"risposta)[*_]*[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_STEP = re.compile(r"^\s*[#*]*\s*(\w+ )?\d+\s*[.):\u3001]", re.MULTILINE)
PARAGRAPH_END: Final = re.compile(r"\n\s*\n")
SOLUTION_LABEL: Final = re.compile(
    r"^[ \t#*_]*(solutions?|answers?|soluci\u00f3n(es)?|solucion(es)?|respuestas?|l\u00f6sung(en)?|"
    r"antworten?|r\u00e9ponses?|solu\u00e7\u00e3o|soluzion[ei])\b[^\n]{0,40}?(:|\*\*|$)",
    re.IGNORECASE | re.MULTILINE,
)


def form_mistake(kind: str, text: str, length_share: float) -> RefusedAnswer | None:
    """Return why a text hasn't the form that its template asks for; None: it has.

    length_share: its words beside those of the passage that it was made of
    """
    if kind == "summary":
        return _too_much("length_share", length_share, MAX_SUMMARY_SHARE)
    count, measure, least = _FORMS.get(kind, _ANY)
    return _too_little(measure, count(text), least)


def _too_little(measure: str, value: float, least: float) -> RefusedAnswer | None:
    return RefusedAnswer(Refusal.MALFORMED, measure, value, least) if value < least else None


def _too_much(measure: str, value: float, most: float) -> RefusedAnswer | None:
    return RefusedAnswer(Refusal.MALFORMED, measure, value, most) if value > most else None


def _questions(text: str) -> int:
    return len(QUESTION_END.findall(text))


def _answer_words(text: str) -> int:
    """Return the words behind the first question that are no questions; 0 where none is asked."""
    parted = ANSWER_LABEL.sub("\n", text)  # some write both on one line
    found = QUESTION_END.search(parted)
    behind = "" if found is None else parted[found.end() :]
    lines = [line for line in behind.split("\n") if not QUESTION_END.search(line)]
    return sum(len(line.split()) for line in lines)


def _rows(text: str) -> int:
    return max(0, count_rows(text) - 1)  # without the header


def _steps(text: str) -> int:
    return len(_STEP.findall(text))


def _paragraphs(text: str) -> int:
    return len(PARAGRAPH_END.split(text))


def _solution_words(text: str) -> int:
    """Return the words of the solution; 0 where there is no exercise in front of one."""
    for found in SOLUTION_LABEL.finditer(text):
        if len(text[: found.start()].split()) >= MIN_EXERCISE_WORDS:
            return len(text[found.end() :].split())
    return 0


_Form = tuple[Callable[[str], int], str, int]
_ANY: Final[_Form] = (lambda _: 1, "", 0)
_FORMS: Final[Mapping[str, _Form]] = {
    "faq": (_questions, "questions", MIN_QUESTIONS),
    "table": (_rows, "rows", MIN_ROWS),
    "tutorial": (_steps, "steps", MIN_STEPS),
    "worked_problem": (_paragraphs, "paragraphs", MIN_PARAGRAPHS),
    "question_answer": (_answer_words, "answer_words", MIN_ANSWER_WORDS),
    "exercise": (_solution_words, "solution_words", MIN_SOLUTION_WORDS),
}
"""What is counted of a template's texts, what that is called, and the least of it."""
