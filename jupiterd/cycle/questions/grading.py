"""Whether an answer is right: by exact match, or as the likeliest of some choices.

Owns both rules. Pure. Doesn't know models: it is given what they wrote, or what choices cost them.

Exact match compares the answer's first line, as evaluation harnesses do that stop a model at a line
end: a model that isn't talked to goes on with the next question. Case, white space, marks at both
ends and forms of the same character don't count, so that `"Ada."` is `ada`.
"""

import unicodedata
from collections.abc import Sequence

from jupiterd.cycle.questions.question_file import DomainQuestion


def matches(question: DomainQuestion, written: str) -> bool:
    """Say whether what a model wrote is one of the right answers."""
    first_line = next((line for line in written.splitlines() if line.strip()), "")
    answer = normalised(first_line)
    return any(answer == normalised(each) for each in question.answers)


def normalised(text: str) -> str:
    """Return what of a text is compared."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    inner = _without_marks(words)
    return inner or words  # the right answer may be a mark itself


def _without_marks(text: str) -> str:
    """Return a text without the punctuation at its ends; a sign, such as that of -1, stays."""
    start, stop = 0, len(text)
    while start < stop and _is_mark(text[start]) and not _is_sign(text, start):
        start += 1
    while start < stop and _is_mark(text[stop - 1]):
        stop -= 1
    return text[start:stop].strip()


def _is_mark(char: str) -> bool:
    return char.isspace() or (unicodedata.category(char).startswith("P") and char != "%")


def _is_sign(text: str, at: int) -> bool:
    return text[at] in "-." and text[at + 1 : at + 2].isdigit()


def picked(nats: Sequence[float], choices: Sequence[str]) -> int | None:
    """Return the place of the choice that is the likeliest per byte, alone; None: there is none.

    nats: -log probability of each choice behind the question. Long choices cost more and aren't
    wrong for that, so a byte of each is compared (`acc_norm` of lm-evaluation-harness).
    """
    rates = [value / len(choice.encode()) for value, choice in zip(nats, choices, strict=True)]
    least = min(rates)
    places = [place for place, rate in enumerate(rates) if rate == least]
    return places[0] if len(places) == 1 else None


def chooses_rightly(question: DomainQuestion, nats: Sequence[float]) -> bool:
    """Say whether the right choice is the likeliest one; a tie is no answer."""
    return picked(nats, question.choices) == question.right_choice
