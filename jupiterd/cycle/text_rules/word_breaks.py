"""Words that a line's end cuts in two, and how two lines are put together.

Owns when a hyphen at a line's end belongs to the layout and when to the word. Doesn't know which
lines belong together.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from jupiterd.cycle.text_rules.characters import SOFT_HYPHEN

MIN_CUT_WORDS, MIN_CUT_LINES = 3, 0.02
"""So many words, and so large a share of the lines, end in a hyphen where a layout cuts words."""

_HYPHENS = "-\u2010" + SOFT_HYPHEN
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
# From a word's first letter on alone: else a line of one endless word is read once for each letter.
_CUT_WORD = re.compile(rf"(?<![^\W\d_])[^\W\d_]+[{_HYPHENS}]\n\s*[^\W\d_]+")
_LAST_PIECE = re.compile(
    rf"(?:^|(?<=[\s(\[\"'\u2018\u201c\u00ab\u00bf\u00a1]))([^\W\d_]+(?:-[^\W\d_]+)*)[{_HYPHENS}]$"
)
_FIRST_PIECE = re.compile(r"[^\W\d_]+(?![\w/\\@=:])")
_SUSPENDED = re.compile(r"(?:and|or|to|y|o|e|und|oder|bis|sowie|bzw\.|et|ou)\s")
"""Behind a hyphen that stands for a word to come: `pre- and postfix`."""

_GERMAN = frozenset({"der", "das", "und"})
"""Words without which hardly a page of German is written, and which no other language has all."""
_GERMAN_NOUN = re.compile(r"(?:^|-)[^\W\d_a-z\u00df-\u00ff][a-z\u00df-\u00ff]+$")

# Chinese, Japanese and their full-width marks are written without spaces; Korean isn't.
_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff9f]")


@dataclass(frozen=True)
class TextWords:
    """What a text tells of its own words."""

    words: AbstractSet[str]
    """Its whole words in lower case, compounds with their hyphens and in parts."""
    is_hyphenated: bool
    """Does its layout cut words, as that of a justified column does?"""
    is_german: bool = False
    """German writes compounds as one word; those with a hyphen have a capital behind it."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Return that of a text, before any of its lines are joined."""
        whole, cuts = _CUT_WORD.subn(" ", text)
        words = {word.lower() for word in _WORD.findall(whole)}
        words.update(part for word in tuple(words) if "-" in word for part in word.split("-"))
        least = max(MIN_CUT_WORDS, MIN_CUT_LINES * text.count("\n"))
        return cls(words, cuts >= least, words >= _GERMAN)


def before_next(line: str, following: str, vocabulary: TextWords) -> str:
    """Return a line as it must stand right before the one that goes on with it.

    Args:
        line: without blanks at its end.
        following: without blanks at its start.
        vocabulary: that of the whole text, by which compounds are told from cut words.
    """
    if line.endswith(SOFT_HYPHEN):
        return line.rstrip(SOFT_HYPHEN)
    if line[-1:] in _HYPHENS and line[-2:-1].isalnum() and following[:1].isalnum():
        if _SUSPENDED.match(following):
            return f"{line} "
        return line[:-1] if _is_cut(line, following, vocabulary) else line
    is_unspaced = _UNSPACED.fullmatch(line[-1:]) and _UNSPACED.fullmatch(following[:1])
    return line if is_unspaced else f"{line} "


def _is_cut(line: str, following: str, vocabulary: TextWords) -> bool:
    """Say whether the hyphen at the line's end is the layout's, unlike that of `well-known`."""
    found, begun = _LAST_PIECE.search(line), _FIRST_PIECE.match(following)
    if found is None or begun is None or following[0].isupper():  # a name, a path, a number
        return False
    last, first, words = found.group(1).lower(), begun.group().lower(), vocabulary.words
    if last + first in words:
        return True
    if f"{last}-{first}" in words:
        return False
    if vocabulary.is_german and _GERMAN_NOUN.search(found.group(1)):
        return True
    if "-" in last:
        return False
    known = (last in words) + (first in words)
    return known == 0 or (known == 1 and vocabulary.is_hyphenated)
