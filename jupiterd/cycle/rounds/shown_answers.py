"""How an answer is shown beside a verdict: what of it there is to see, and what is odd about it.

Pure. Owns these words, the same on a terminal, in the dashboard and on the report's page. Doesn't
know how they are laid out (`answer_lines`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from jupiterd.cycle.generation.round_answers import ROLES
from jupiterd.cycle.text_rules.looping import is_blank_at_end, is_looping
from jupiterd.formats import counted

NO_ANSWER: Final = "no answer"
NOTHING: Final = "ends at once"
BLANK: Final = "blank lines alone"
ENDS_BLANK: Final = "then blank lines alone"
LOOPS: Final = "repeats itself"

LOOP_LINES: Final = 10
LOOP_CHARS: Final = 300
"""Of an answer that goes round so much is shown: what follows is the same again."""


WHY: Final = (
    "Each word is the likeliest one here, and not drawn by chance as in the gate's completions, so "
    "that small models easily repeat themselves"
)


class AnsweringModel(NamedTuple):
    """One model, with all the roles that it plays."""

    title: str
    role: str
    """By which its answers are found in a row."""
    model: str


class ShownAnswer(NamedTuple):
    """One answer, for people."""

    text: str
    """Without blank lines that never end; empty where there is nothing to see."""
    note: str
    """What is odd about it; empty: nothing is."""


def answering_models(answers: Mapping[str, Any]) -> list[AnsweringModel]:
    """Return the different models, from left to right; one may play two roles."""
    models: Mapping[str, str | None] = answers["models"]
    played = [(str(models[role]), role) for role in ROLES if models.get(role)]
    found: list[AnsweringModel] = []
    for model, roles in groupby(played, key=lambda each: each[0]):
        names = [role for _, role in roles]
        found.append(AnsweringModel(" and ".join(names), names[0], model))
    return found


def shown_answer(answer: object) -> ShownAnswer:
    """Return an answer as it is shown; None is one that nobody has."""
    if answer is None:
        return ShownAnswer("", NO_ANSWER)
    text = str(answer)
    if not text.strip():
        return ShownAnswer("", BLANK if text else NOTHING)
    if is_blank_at_end(text):
        return ShownAnswer(text.rstrip(), ENDS_BLANK)
    return ShownAnswer(_beginning(text), LOOPS) if is_looping(text) else ShownAnswer(text, "")


def _beginning(text: str) -> str:
    shown = "\n".join(text[:LOOP_CHARS].splitlines()[:LOOP_LINES]).rstrip()
    return shown if shown == text.rstrip() else f"{shown} ..."


def looping_line(answers: Mapping[str, Any]) -> str:
    """Say how many answers of each model do so; empty where none does."""
    parts = list(_looping(answers))
    return f"{WHY}: {', '.join(parts)}" if parts else ""


def _looping(answers: Mapping[str, Any]) -> Iterator[str]:
    rows: Sequence[Mapping[str, Any]] = answers["rows"]
    for each in answering_models(answers):
        given = [str(row[each.role]) for row in rows if row.get(each.role) is not None]
        if looping := sum(map(is_looping, given)):
            yield f"{looping} of {counted(len(given), 'answer')} of {each.title}"
