"""Whether an answer is right: it has a right one in it, or is the likeliest of some choices.

Owns both rules. Pure. Doesn't know models: it is given what they wrote, or what choices cost them.

| rule | as in |
|---|---|
| only the first line is compared: a model that isn't talked to goes on with the next question | \
lm-evaluation-harness, whose tasks of short answers stop at a line end |
| case, white space, articles and marks around words don't count | `normalize_answer` of SQuAD's \
evaluate-v1.1 and -v2.0, and `exact_match` of nq_open and triviaqa in lm-evaluation-harness |
| a right answer anywhere in the line counts, "The answer is Paris." for "Paris" | `contains` of \
squad_completion in lm-evaluation-harness, and PopQA (Mallen et al. 2022) |

Where these go too far for people's own questions, they are narrower: an answer is found as whole
words, so that 5 isn't in 15, and marks are taken from the ends of words alone, so that -1 isn't 1
and C++ isn't C. What only denies a right answer, or lists it with wrong ones, counts as well; so
whether an answer is nothing but a right one (SQuAD's exact match) is told beside it.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from jupiterd.cycle.questions.question_file import DomainQuestion

_ARTICLES: Final = frozenset({"a", "an", "the"})
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)
"""Scripts that put no space between words: an answer in them is found anywhere."""


def matches(question: DomainQuestion, written: str) -> bool:
    """Say whether the first line of what a model wrote has one of the right answers in it."""
    answer = normalised(_first_line(written))
    return any(_contains(answer, normalised(each)) for each in question.answers)


def is_exact(question: DomainQuestion, written: str) -> bool:
    """Say whether the first line of what a model wrote is a right answer and nothing else."""
    answer = normalised(_first_line(written))
    return any(answer == normalised(each) for each in question.answers)


def normalised(text: str) -> str:
    """Return what of a text is compared: words without case, marks at their ends, and articles."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    inner = [each for word in words if (each := _without_marks(word))]
    named = [each for each in inner if each not in _ARTICLES]
    return " ".join(named or inner or words)  # the right answer may be an article, or a mark


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _contains(text: str, answer: str) -> bool:
    if _UNSPACED.search(answer):
        return answer in text
    return f" {answer} " in f" {text} "


def _without_marks(word: str) -> str:
    """Return a word without the punctuation at its ends; a sign, such as that of -1, stays."""
    start, stop = 0, len(word)
    while start < stop and _is_mark(word[start]) and not _is_sign(word, start):
        start += 1
    while start < stop and _is_mark(word[stop - 1]):
        stop -= 1
    return word[start:stop]


def _is_mark(char: str) -> bool:
    return char == "`" or (unicodedata.category(char).startswith("P") and char != "%")


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
