"""Which texts share too much with held-out ones to be trained on, whoever wrote them.

Owns the index of the held-out words and the bound. Doesn't know files, or what is done with a text.

A run of 13 words that also stands in a held-out text is a hit. A text is contaminated where hits
cover at least half of it, or half of a held-out text: a book that quotes a whole held-out page
gives the page away, however small a part of the book it is. Memory: about 100 bytes for each
held-out word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

WORDS_IN_RUN = 13
"""As in GPT-3 (Brown et al. 2020, appendix C)."""
MAX_COVERAGE = 0.5

_WORD = re.compile(r"\w+")
_UNKNOWN = -1


class Holdout:
    """The held-out texts, ready to be compared with."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._vocabulary: dict[str, int] = {}
        self._document_of: dict[int, int] = {}
        self._runs: list[int] = []
        """For each held-out text, how many runs are counted as its own."""
        for number, text in enumerate(texts):
            self._add(number, text)

    def _add(self, number: int, text: str) -> None:
        vocabulary = self._vocabulary
        words = [vocabulary.setdefault(word, len(vocabulary)) for word in _words(text)]
        own = 0
        for run in map(hash, _runs(words)):
            own += self._document_of.setdefault(run, number) == number
        self._runs.append(own)

    def contaminates(self, text: str) -> bool:
        """Say whether the text shares so much with the holdout that it mustn't be trained on."""
        words = [self._vocabulary.get(word, _UNKNOWN) for word in _words(text)]
        # Hashes of numbers: unlike those of text they are the same in every process.
        runs = list(map(hash, _runs(words)))
        hits = [start for start, run in enumerate(runs) if run in self._document_of]
        if not hits:
            return False
        return _covered(hits) >= MAX_COVERAGE * len(words) or self._gives_away(
            {runs[start] for start in hits}
        )

    def _gives_away(self, found: set[int]) -> bool:
        shared = Counter(self._document_of[run] for run in found)
        return any(times >= MAX_COVERAGE * self._runs[number] for number, times in shared.items())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _runs(words: list[int]) -> Iterator[tuple[int, ...]]:
    return zip(*(words[start:] for start in range(WORDS_IN_RUN)), strict=False)


def _covered(hits: list[int]) -> int:
    """Return how many words lie in runs that begin at these places."""
    covered = end = 0
    for start in hits:
        covered += start + WORDS_IN_RUN - max(start, end)
        end = start + WORDS_IN_RUN
    return covered
