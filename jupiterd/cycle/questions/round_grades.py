"""How many of the domain's own questions a round's models answer rightly, beside its verdict.

Owns which questions a round asks, and the form of the result: counts of the item that scores. Pure.
Nothing is decided by these: the models of a round are shown the same questions in every round.

    own_questions 20, own_right 14 (the candidate's), own_right:ARTIFACT 14, own_right:OTHER 9
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from jupiterd.cycle.questions.accuracy import Accuracy
from jupiterd.cycle.questions.question_file import DomainQuestion

ASKED: Final = "own_questions"
"""In the counts: so many were asked; and in the params of the item: whom they are asked."""

RIGHT: Final = "own_right"
"""In the counts, of the candidate; with a colon and an artifact, of that model."""

TROUBLE: Final = "own_questions_trouble"
"""In the summary: why some models weren't asked."""

MOST_ASKED: Final = 100
"""A round asks so many at most, evenly spread over the file."""

MOST_CHARS: Final = 400_000
"""Of all that models read of them, where each choice is read behind its question."""


def asked_in_round(questions: Sequence[DomainQuestion]) -> list[DomainQuestion]:
    """Return the questions that every round asks: some of all parts of the file."""
    count = min(len(questions), MOST_ASKED)
    spread = [questions[place * len(questions) // count] for place in range(count)]
    found: list[DomainQuestion] = []
    left = MOST_CHARS
    for each in spread:
        left -= _read_chars(each)
        if left < 0 and found:
            break
        found.append(each)
    return found


def _read_chars(question: DomainQuestion) -> int:
    choices = question.choices or ("",)
    return sum(len(question.question) + len(each) for each in choices)


def grade_counts(asked: int, right: Mapping[str, int], candidate: str) -> dict[str, float]:
    """Return the counts that say so.

    right: artifact of a model -> its right answers
    """
    found: dict[str, float] = {f"{RIGHT}:{model}": count for model, count in right.items()}
    if candidate in right:
        found[RIGHT] = right[candidate]
    return {ASKED: asked, **found} if found else {}


def grades_in(counts: Mapping[str, float]) -> dict[str, Accuracy]:
    """Return the models' grades by their artifacts; nothing where none was asked."""
    asked, begins = counts.get(ASKED, 0), f"{RIGHT}:"
    if not 0 < asked < math.inf:  # whoever scored may have said anything, no number at all as well
        return {}
    return {
        name.removeprefix(begins): Accuracy(int(right), int(asked))
        for name, right in counts.items()
        if name.startswith(begins) and 0 <= right <= asked
    }


def grades_text(grades: Mapping[str, Accuracy], roles: Iterable[tuple[str, str]]) -> str:
    """Return a sentence for people; empty: nobody was asked.

    roles: what a model is called, and its artifact; a second role of one model isn't told
    """
    told: dict[str, str] = {}
    for name, model in roles:
        if model in grades:
            told.setdefault(model, f"{name} {_accuracy_text(grades[model])}")
    return f"Your own questions: {'; '.join(told.values())}." if told else ""


def _accuracy_text(found: Accuracy) -> str:
    low, high = 100 * found.interval.low, 100 * found.interval.high
    return f"{found.right} of {found.questions} right (95 %: {low:.0f} to {high:.0f} %)"
