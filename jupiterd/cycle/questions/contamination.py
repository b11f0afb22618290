"""Which texts give a domain's own questions away: they have one with its answer, word for word.

Owns that rule. Pure. Doesn't know files, or what is done with a text. Held-out text has a rule of
its own (`text_rules.decontamination`): its runs of 13 words are longer than most questions.

A question counts where it and its answer have eight words together, as in GPT-3 (Brown et al. 2020,
appendix C); a shorter one is a fact of the domain more often than somebody's copy of it. It stands
in a text where all of its words do in a row, and those of a right answer soon after.
"""

import re
from collections.abc import Iterable
from typing import Final

from jupiterd.cycle.questions.question_file import DomainQuestion

LEAST_WORDS: Final = 8
"""Of a question with its answer."""
BEGINNING: Final = 3
"""Words by which a question is looked up; a shorter one isn't compared."""
NEAR: Final = 64
"""Words behind a question among which its answer is looked for, such as behind other choices."""

_WORD = re.compile(r"\w+")

Words = tuple[str, ...]


class QuestionIndex:
    """Questions with their answers, ready to be compared with."""

    def __init__(self, questions: Iterable[DomainQuestion]) -> None:
        self._lengths: dict[Words, set[int]] = {}
        """The first words of questions -> how many words those have: many begin alike."""
        self._answers: dict[Words, list[Words]] = {}
        for each in questions:
            asked, answers = _words(each.question), [_words(answer) for answer in each.answers]
            long = [found for found in answers if found and _is_long(asked, found)]
            if long and len(asked) >= BEGINNING:
                self._lengths.setdefault(asked[:BEGINNING], set()).add(len(asked))
                self._answers.setdefault(asked, []).extend(long)

    def contaminates(self, text: str) -> bool:
        """Say whether the text has a question with its answer, so that it mustn't be trained on."""
        if not self._answers:
            return False
        words = _words(text)
        runs = zip(*(words[start:] for start in range(BEGINNING)), strict=False)
        return any(
            _follows(words, place + length, answer)
            for place, run in enumerate(runs)
            for length in self._lengths.get(run, ())
            for answer in self._answers.get(words[place : place + length], ())
        )


def _is_long(asked: Words, answer: Words) -> bool:
    return len(asked) + len(answer) >= LEAST_WORDS


def _follows(words: Words, end: int, answer: Words) -> bool:
    starts = range(end, end + NEAR)
    return any(words[start : start + len(answer)] == answer for start in starts)


def _words(text: str) -> Words:
    return tuple(_WORD.findall(text.lower()))
