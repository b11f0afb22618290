"""Which texts share too much with held-out ones to be trained on, whoever wrote them.

Owns the index of the held-out words and the bound. Doesn't know files, or what is done with a text.

A run of 13 words that also stands in a held-out text is a hit. A text is contaminated where hits
cover at least half of it, or half of a held-out text: a book that quotes a whole held-out page
gives the page away, however small a part of the book it is. The order of the held-out texts plays
no part. Memory: about 100 bytes for each held-out word.

A run that stands in more than MAX_OWNERS held-out texts is a notice, such as a licence: whoever has
it, too, gives none of them away. It is a hit all the same. What stands as a notice above code isn't
compared at all: where few files of a project are held out, it would be most of a short one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

WORDS_IN_RUN = 13
"""As in GPT-3 (Brown et al. 2020, appendix C)."""
MAX_COVERAGE = 0.5
MAX_OWNERS = 16
"""It also bounds what a look at a text with such a notice costs."""

_WORD = re.compile(r"\w+")
_UNKNOWN = -1

_COMMENT = re.compile(
    r"[ \t]*(?://|/\*|\*|#(?!include|define|if|pragma|import)|--|;|%|<!--|\"\"\")"
)
_NOTICE = re.compile(r"copyright|licen[cs]e|spdx-|all rights reserved", re.IGNORECASE)
_MAX_LINES = 400


class HeldOutIndex:
    """The held-out texts, ready to be compared with."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._vocabulary: dict[str, int] = {}
        self._first_owner: dict[int, int] = {}
        """Run -> the first held-out text with it."""
        self._further_owners: dict[int, list[int]] = {}
        """Run -> the others, few of which there are; one too many where it is a notice."""
        self._own: list[int] = []
        """For each held-out text, how many different runs are counted as its own."""
        seen: set[int] = set()
        for words in map(self._numbered, texts):
            if (text := hash(words)) not in seen:
                seen.add(text)
                self._add(words)

    def _numbered(self, text: str) -> tuple[int, ...]:
        vocabulary = self._vocabulary
        return tuple(vocabulary.setdefault(word, len(vocabulary)) for word in _words(text))

    def _add(self, words: tuple[int, ...]) -> None:
        number = len(self._own)
        self._own.append(0)
        for run in set(map(hash, _runs(words))):
            if self._first_owner.setdefault(run, number) == number:
                self._own[number] += 1
            else:
                self._share(run, number)

    def _share(self, run: int, number: int) -> None:
        """Count the run for one more text, or for none any more."""
        others = self._further_owners.setdefault(run, [])
        if len(others) == MAX_OWNERS:
            return
        others.append(number)
        if len(others) < MAX_OWNERS:
            self._own[number] += 1
        else:
            for owner in (self._first_owner[run], *others[:-1]):
                self._own[owner] -= 1

    def _owners(self, run: int) -> Sequence[int]:
        others = self._further_owners.get(run, ())
        return () if len(others) == MAX_OWNERS else (self._first_owner[run], *others)

    def contaminates(self, text: str) -> bool:
        """Say whether the text shares so much with the holdout that it mustn't be trained on."""
        words = [self._vocabulary.get(word, _UNKNOWN) for word in _words(text)]
        # Hashes of numbers: unlike those of text they are the same in every process.
        runs = list(map(hash, _runs(words)))
        hits = [start for start, run in enumerate(runs) if run in self._first_owner]
        if not hits:
            return False
        return _covered(hits) >= MAX_COVERAGE * len(words) or self._gives_away(
            {runs[start] for start in hits}
        )

    def _gives_away(self, found: set[int]) -> bool:
        shared = Counter(owner for run in found for owner in self._owners(run))
        return any(times >= MAX_COVERAGE * self._own[number] for number, times in shared.items())


def _words(text: str) -> list[str]:
    return _WORD.findall(without_notice(text).lower())


def _runs(words: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return zip(*(words[start:] for start in range(WORDS_IN_RUN)), strict=False)


def _covered(hits: list[int]) -> int:
    """Return how many words lie in runs that begin at these places."""
    covered = end = 0
    for start in hits:
        covered += start + WORDS_IN_RUN - max(start, end)
        end = start + WORDS_IN_RUN
    return covered


def without_notice(text: str) -> str:
    """Return a text without the licence notice above its code; unchanged where there is none.

    A project has the same notice in every file. It counts only while texts are compared: the text
    itself keeps it. Comments are known by how their lines begin, in whatever language.
    """
    end = last = 0
    is_notice = is_open = False
    for line in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        start, end = end, end + len(line) + 1
        if not is_open and line.strip() and not _COMMENT.match(line):
            break
        is_open = (is_open or "/*" in line) and "*/" not in line
        is_notice = is_notice or _NOTICE.search(line) is not None
        last = end if line.strip() else max(last, start)
    return text[last:] if is_notice and not is_open else text
