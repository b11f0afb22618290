"""The passages of a document: pieces that a generator can hold.

Owns where a document is cut. Doesn't know tokens, prompts or templates.
"""

import re
from collections.abc import Iterator

MIN_CHARS = 200
"""Of less, nothing but inventions can be made."""

MAX_CHARS = 6_000
"""About 1,500 tokens of English: more than small models attend to isn't of use."""

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?\u0964]+\s+|[\u3002\uff01\uff1f]+\s*")


def passages(text: str, max_chars: int = MAX_CHARS) -> list[str]:
    """Return a document's pieces in their order, none longer than `max_chars` characters.

    They are whole paragraphs, put together as far as they fit; a longer one is cut between
    sentences, and a longer sentence anywhere. What is shorter than MIN_CHARS is left out.
    """
    found: list[str] = []
    current = ""
    for part in _parts(text, max_chars):
        joined = f"{current}\n\n{part}" if current else part
        if len(joined) > max_chars:
            found.append(current)
            joined = part
        current = joined
    return [piece for piece in (*found, current) if len(piece) >= min(MIN_CHARS, max_chars)]


def _parts(text: str, max_chars: int) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        stripped = paragraph.strip()
        if len(stripped) <= max_chars:
            if stripped:
                yield stripped
        else:
            yield from _cut(stripped, max_chars)


def _cut(paragraph: str, max_chars: int) -> Iterator[str]:
    ends = [match.end() for match in _SENTENCE_END.finditer(paragraph)]
    start = 0
    while len(paragraph) - start > max_chars:
        fitting = [end for end in ends if start < end <= start + max_chars]
        end = fitting[-1] if fitting else start + max_chars
        yield paragraph[start:end].strip()
        start = end
    yield paragraph[start:].strip()
