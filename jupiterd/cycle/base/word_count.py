"""What a word and a sentence of prose are: the grain of every rule about prose.

Owns the cutting. Doesn't know rules or thresholds.

Every run that is looked ahead at is bounded, so that no text takes longer than its length.

Close to what spaCy's English tokenizer makes of a text, because the published thresholds are used
with that: punctuation stands alone, `it's` is two words, `3.14`, `U.S.` and an address are one.
"""

import re

_ADDRESS = r"[a-z]+://[^\s<>\"')\]]*[^\s<>\"')\].,;:!?]"
_ABBREVIATION = r"(?<!\w)(?:[^\W\d_]\.)+|(?:Co|Corp|Dr|Inc|Jr|Ltd|Mr|Mrs|Ms|Prof|St)\."
_MARKS = (
    "\u0300-\u036f\u0590-\u05c7\u0610-\u065f\u0900-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece"
    "\u102b-\u103e\u17b4-\u17d3"
)
"""Combining marks: parts of words that `\\w` leaves out."""
_PART = rf"\w[\w{_MARKS}]*"
_WORD = (
    rf"(?:(?<![\w.])(?:[-/]{{1,3}}|\./?))?{_PART}"
    rf"(?:[.@]{_PART}|[,:/=]\d\w*|(?<=[^\W\d_])[-+]\d\w*)*(?:[-/](?=\s))?"
)

_TOKEN = re.compile(rf"{_ADDRESS}|{_ABBREVIATION}|{_WORD}|(?<=\w)['\u2019]\w+|\.\.+|-+|[^\w\s]")

_SENTENCE_ENDS = (
    "!?\u203c\u203d\u2047-\u2049\u0589\u061f\u06d4\u0964\u0965\u104a\u104b\u1362\u17d4"
    "\u3002\uff01\uff0e\uff1f\uff61"
)
_FULL_STOP = r"(?<![\W.][^\W\d_])(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\.)\.(?!\.)"
"""None of an abbreviation, nor of an ellipsis."""
_SENTENCE_BREAK = re.compile(
    rf"(?:[{_SENTENCE_ENDS}]|{_FULL_STOP})[^\w\s]{{0,9}}\s+(?=[^\w\s]{{0,9}}\w)"
)


def split_words(text: str) -> list[str]:
    """Return the words and marks of a text in their order."""
    return _TOKEN.findall(text)


def count_sentences(line: str) -> int:
    """Return how many sentences a line has; one without a full stop is one."""
    return len(_SENTENCE_BREAK.findall(line)) + 1 if line else 0
