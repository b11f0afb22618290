"""Whether an answer is about the passage that it was asked about, by the words that both have.

Owns the measures. Models that are too small for a task write fluently of something else; whoever
rewrites a passage uses its terms. Doesn't know tasks, and can't tell whether what is said is true.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from jupiterd.cycle.base.unsegmented_scripts import LETTERS_PER_WORD, letters_of

STEM_CHARS: Final = 5
"""Words that begin alike are taken for forms of one; shorter ones carry the grammar."""

_LINK: Final = re.compile(r"https?://(?:www\.)?([a-z0-9][a-z0-9.-]*\.[a-z0-9]+)", re.IGNORECASE)
_OF_EXAMPLES: Final = re.compile(
    r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost|local|internal)$|^[\d.]+$"
)
"""RFC 2606 and 6761, and addresses of numbers alone."""
_WORD: Final = re.compile(r"[^\W_]+")


def grounded_share(text: str, passage: str, language: str) -> float:
    """Return the share of an answer's terms that the passage has too, 0 to 1; 1 if either has none.

    language: decides whether words can be told apart; else it goes by pairs of letters
    """
    terms, known = _terms(text, language), set(_terms(passage, language))
    return sum(term in known for term in terms) / len(terms) if terms and known else 1.0


def unknown_hosts(text: str, passage: str) -> int:
    """Return to how many sites an answer links that its passage doesn't name: they're made up.

    Those that are kept for examples, and a reader's own machine, aren't counted.
    """
    known = passage.lower()
    hosts = {found.lower().rstrip(".") for found in _LINK.findall(text)}
    return sum(not _OF_EXAMPLES.search(host) and host not in known for host in hosts)


def _terms(text: str, language: str) -> Sequence[str]:
    """Return the different terms of a text, in their order."""
    found = _pairs(text) if language in LETTERS_PER_WORD else _stems(text)
    return list(dict.fromkeys(found))


def _stems(text: str) -> Iterator[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return (word[:STEM_CHARS] for word in words if len(word) >= STEM_CHARS)


def _pairs(text: str) -> Iterator[str]:
    letters = letters_of(text)
    return (first + second for first, second in itertools.pairwise(letters))
