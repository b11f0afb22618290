"""A file of questions with their right answers: one JSON object on each line.

Owns the form of the file. Pure: it is given text. Doesn't know models, or how answers are graded.

    {"question": "Who wrote it?", "answer": "Ada"}                  the answer is compared as text
    {"question": "Who wrote it?", "answer": ["Ada", "A. Lovelace"]}  any of them is right
    {"question": "Who?", "choices": ["Ada", "Bob"], "answer": 0}     the likeliest choice counts

A choice may be named by its text, too. `topic`, where there is one, makes a row of its own in the
table of scores.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.errors import UsageError

QUESTIONS: Final = "questions"
"""Of a cycle's settings, and among the inputs of work: the artifact of its domain's own."""

QUESTIONS_FILE: Final = "questions.jsonl"
"""In that artifact."""

MAX_QUESTIONS: Final = 10_000
MAX_DOMAIN_BYTES: Final = 1 << 20
"""Of a domain's own questions: they travel in one message when a cycle starts."""
MAX_CHARS: Final = 20_000
"""Of a question, an answer or a choice."""
MAX_CHOICES: Final = 26
MAX_SHOWN_CHARS: Final = 60

_FIELDS: Final = frozenset({"question", "answer", "choices", "topic"})
_HINT: Final = 'a line is such as {"question": "Who wrote it?", "answer": "Ada"}'


@dataclass(frozen=True)
class DomainQuestion:
    """One question; with choices it is one of them, else any text."""

    question: str
    answers: tuple[str, ...]
    """Each of them is right."""
    choices: tuple[str, ...] = ()
    topic: str = ""

    @property
    def right_choice(self) -> int:
        """Return the place of the right one among the choices."""
        return self.choices.index(self.answers[0])


def read_questions(text: str, name: str) -> list[DomainQuestion]:
    """Return the questions of a file; empty lines are passed over.

    name: of the file, for people

    Raises:
        UsageError: a line is no question, is there twice, or the file has none or too many.
    """
    found: dict[DomainQuestion, int] = {}
    for number, question in _questions(text, name):
        if question in found:
            raise UsageError(f"lines {found[question]} and {number} of {name} are the same")
        found[question] = number
        if len(found) > MAX_QUESTIONS:
            raise UsageError(f"{name} has more than {MAX_QUESTIONS:,} questions")
    if not found:
        raise UsageError(f"{name} has no question", _HINT)
    return list(found)


def _questions(text: str, name: str) -> Iterator[tuple[int, DomainQuestion]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, _question(json.loads(line))
        except (ValueError, RecursionError) as error:
            reason = "it is no JSON" if not isinstance(error, _MistakeError) else str(error)
            raise UsageError(f"line {number} of {name}: {reason}", _HINT) from error


class _MistakeError(ValueError):
    """What is wrong with a line, for people."""


def _question(row: object) -> DomainQuestion:
    if not isinstance(row, dict):
        raise _MistakeError("it is no JSON object")
    fields: Mapping[str, Any] = row
    if unknown := sorted(str(each) for each in fields.keys() - _FIELDS):
        raise _MistakeError(f"nobody knows its field {unknown[0][:MAX_SHOWN_CHARS]}")
    question, topic = _text(fields, "question"), fields.get("topic", "")
    if not isinstance(topic, str):
        raise _MistakeError("its topic is no text")
    if "choices" not in fields:
        return DomainQuestion(question, _texts(fields.get("answer"), "answer"), topic=topic)
    choices = _texts(fields["choices"], "choices")
    return DomainQuestion(question, (_chosen(fields.get("answer"), choices),), choices, topic)


def _chosen(answer: object, choices: Sequence[str]) -> str:
    """Return the right choice, which a line names by its text or its place."""
    if not 2 <= len(choices) <= MAX_CHOICES:
        raise _MistakeError(f"it has {len(choices)} choices; 2 to {MAX_CHOICES} are asked for")
    if len(set(choices)) < len(choices):
        raise _MistakeError("two of its choices are the same")
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(choices):
        return choices[answer]
    if isinstance(answer, str) and answer in choices:
        return answer
    raise _MistakeError("its answer is none of its choices; the first one is number 0")


def _texts(value: object, field: str) -> tuple[str, ...]:
    listed: Sequence[Any] = value if isinstance(value, list) else [value]
    if not listed:
        raise _MistakeError(f"its {field} is empty")
    return tuple(_text({field: each}, field) for each in listed)


def _text(fields: Mapping[str, Any], field: str) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or not value.strip():
        raise _MistakeError(f"its {field} is missing, empty or no text")
    if len(value) > MAX_CHARS:
        raise _MistakeError(f"its {field} has more than {MAX_CHARS:,} characters")
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise _MistakeError(f"its {field} has half of a character, such as \\ud83d alone")
    return value
