"""Languages whose words stand without spaces between them, and what is counted there instead.

Owns these languages and the counts. Doesn't know thresholds, or how other languages are cut.

What stands between two spaces is a clause or a sentence there, so that rules made for words would
take nearly every text for odd. Finding words needs a dictionary of each language; but the published
bounds are far apart, so that a rough number of letters for each word serves as well.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

LETTERS_PER_WORD: Mapping[str, int] = MappingProxyType(
    {"zh": 2, "ja": 2, "th": 4, "lo": 3, "km": 3, "my": 3}
)
"""Language -> letters of a word in the mean, roughly; marks above and below aren't counted."""

WITHOUT_SENTENCE_MARKS = frozenset({"th", "lo"})
"""Their sentences end with a space."""

ZERO_WIDTH_SPACE = "\u200b"
"""Some pages have it where a line may break, between words."""

_SENTENCE_END = re.compile(
    "[.!?\u104b\u17d4\u17d5\u3002\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61]+"
)


def letters_of(text: str) -> str:
    """Return the letters of a text alone, without marks and spaces."""
    return "".join(filter(str.isalpha, text))


def estimated_words(text: str, language: str) -> int:
    """Return about how many words a text in one of these languages has."""
    return len(letters_of(text)) // LETTERS_PER_WORD[language]


def count_marked_sentences(line: str) -> int:
    """Return how many sentences a line has; no space needs to follow a mark."""
    return sum(any(map(str.isalpha, part)) for part in _SENTENCE_END.split(line))
