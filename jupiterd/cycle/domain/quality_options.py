"""How much a text reads like chosen ones: naive Bayes over its words and pairs of words.

Owns the counting, the score and the lowest score that is kept. Doesn't know sources or files.

A text is worth by how much likelier it is among the reference than among the rest (Moore and Lewis
2010, Intelligent Selection of Language Model Training Data), for each word and pair of words, which
are counted by hash (Xie et al. 2023, arXiv 2302.03169). Both sides are smoothed by what they have
in common (a Dirichlet prior, Zhai and Lafferty 2001), so that against a small reference the words
that every text has aren't taken for odd ones.

Counts are whole numbers, so the order of the texts plays no part; so are the weights, for machines
differ in the last digit of a logarithm.
"""

import math
import re
from array import array
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from zlib import crc32

from jupiterd.cycle.base.unsegmented_scripts import LETTERS_PER_WORD

QUALITY = "quality@1"
"""Name@version of the score; another one where it may differ."""

BUCKETS = 1 << 16
"""Words and pairs of words that fall into one are counted as the same."""

PRIOR_COUNT = 4096
"""So many words of what both sides have in common are added to each."""

_WEIGHTS_PER_BIT = 1024
_TOKEN = re.compile(r"\w+|[^\w\s]+")
_UNSPACED_TOKEN = re.compile(r"\w|[^\w\s]+")


class WordCounts:
    """How often each bucket's words and pairs come in the texts of one side."""

    def __init__(self) -> None:
        self.counts = array("Q", bytes(8 * BUCKETS))
        self.total = 0

    def add(self, text: str, language: str) -> None:
        """Count one more text."""
        found = _buckets(text, language)
        for bucket in found:
            self.counts[bucket] += 1
        self.total += len(found)


class Likeness:
    """Scores texts, once both sides were counted; each has at least one word."""

    def __init__(self, reference: WordCounts, rest: WordCounts) -> None:
        sizes = reference.total, rest.total
        self._weights = array(
            "q",
            (
                _weight(in_reference, in_rest, *sizes) if in_reference + in_rest else 0
                for in_reference, in_rest in zip(reference.counts, rest.counts, strict=True)
            ),
        )

    def score(self, text: str, language: str) -> float:
        """Return in bits how much likelier its words are in the reference, in the mean."""
        found = _buckets(text, language)
        if not found:
            return 0.0
        return sum(map(self._weights.__getitem__, found)) / (len(found) * _WEIGHTS_PER_BIT)


def _weight(in_reference: int, in_rest: int, reference: int, rest: int) -> int:
    """Return the logarithm of how much likelier a bucket is in the reference."""
    both, total = in_reference + in_rest, reference + rest
    here = (in_reference * total + PRIOR_COUNT * both) * (rest + PRIOR_COUNT)
    there = (in_rest * total + PRIOR_COUNT * both) * (reference + PRIOR_COUNT)
    return round(_WEIGHTS_PER_BIT * math.log2(here / there))


def _buckets(text: str, language: str) -> list[int]:
    pattern = _UNSPACED_TOKEN if language in LETTERS_PER_WORD else _TOKEN
    words = [crc32(word.encode()) for word in pattern.findall(text.lower())]
    pairs = [31 * first + second for first, second in pairwise(words)]
    return [value % BUCKETS for value in (*words, *pairs)]


def lowest_retained(scores: Iterable[tuple[float, int]], keep_share: float) -> tuple[float, int]:
    """Return the lowest of (score, number) that is kept, so that such a share of them is.

    Among equal scores the greater number ranks higher. Of none, nothing is too low.
    """
    ranked = sorted(scores, key=itemgetter(0, 1))
    count = max(1, round(keep_share * len(ranked)))
    return ranked[-count] if ranked else (-math.inf, 0)
