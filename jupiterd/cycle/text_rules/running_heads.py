"""Lines that printed pages carry at their ends: running heads and feet, and numbers of pages.

Owns which lines those are. Doesn't know files, or how the lines of a page become paragraphs.

Such a line stands at the same end of a page near by, but for its numbers: left and right pages may
have heads of their own, and each chapter its own title.
"""

import re
from collections.abc import Iterator, Sequence

MAX_LINES = 3
"""At either end of a page."""

NEAR_PAGES = 2
"""So far away another page has the same line: heads of left and right pages take turns."""

MAX_CHARS = 160

_NUMBER = re.compile(r"\d+|\b[ivxlc]{1,7}\b", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_ROW_NUMBERS = 3
"""So many numbers without a word are a row of a table."""


def without_running_heads(pages: Sequence[str]) -> list[str]:
    """Return the pages of one document without their heads, feet and numbers."""
    lines = [[line for line in page.splitlines() if line.strip()] for page in pages]
    heads = _running([page[:MAX_LINES] for page in lines])
    feet = _running([page[::-1][:MAX_LINES] for page in lines])
    found = [
        _without(page, head, foot) for page, head, foot in zip(pages, heads, feet, strict=True)
    ]
    return found if any(found) else list(pages)  # all pages say the same, and nothing else


def _running(ends: Sequence[Sequence[str]]) -> Iterator[int]:
    """Yield for each page how many of its outermost lines belong to no text.

    Args:
        ends: of each page its lines at one end, the outermost first.
    """
    keys = [[_key(line) for line in end] for end in ends]
    for number, own in enumerate(keys):
        around = keys[max(0, number - NEAR_PAGES) : number] + keys[number + 1 :][:NEAR_PAGES]
        near = {key for page in around for key in page}
        yield next((at for at, key in enumerate(own) if not key or key not in near), len(own))


def _key(line: str) -> str:
    """Return what a line and its like on other pages have in common; empty: it may be text."""
    text = line.strip()
    numbers = _NUMBER.findall(text)
    rest = _NUMBER.sub("", text)
    if len(text) > MAX_CHARS or (not _LETTER.search(rest) and len(numbers) >= _ROW_NUMBERS):
        return ""
    return "".join(_NUMBER.sub("0", text).lower().split())


def _without(page: str, head: int, foot: int) -> str:
    lines = page.splitlines()
    filled = [number for number, line in enumerate(lines) if line.strip()]
    own = filled[head : len(filled) - foot]
    return "\n".join(lines[own[0] : own[-1] + 1]) if own else ""
