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
        self._by_beginning: dict[Words, list[tuple[Words, list[Words]]]] = {}
        for each in questions:
            asked, answers = _words(each.question), [_words(answer) for answer in each.answers]
            long = [found for found in answers if found and _is_long(asked, found)]
            if long and len(asked) >= BEGINNING:
                self._by_beginning.setdefault(asked[:BEGINNING], []).append((asked, long))

    def contaminates(self, text: str) -> bool:
        """Say whether the text has a question with its answer, so that it mustn't be trained on."""
        if not self._by_beginning:
            return False
        words = _words(text)
        runs = zip(*(words[start:] for start in range(BEGINNING)), strict=False)
        return any(
            words[place : place + len(asked)] == asked
            and any(_follows(words, place + len(asked), answer) for answer in answers)
            for place, run in enumerate(runs)
            for asked, answers in self._by_beginning.get(run, ())
        )


def _is_long(asked: Words, answer: Words) -> bool:
    return len(asked) + len(answer) >= LEAST_WORDS


def _follows(words: Words, end: int, answer: Words) -> bool:
    starts = range(end, end + NEAR)
    return any(words[start : start + len(answer)] == answer for start in starts)


def _words(text: str) -> Words:
    return tuple(_WORD.findall(text.lower()))
