"""Lines that printed pages carry at their ends: running heads and feet, and numbers of pages.

Owns which lines those are. Doesn't know files, or how the lines of a page become paragraphs.

Such a line stands at the same end of a page near by, but for its numbers: left and right pages may
have heads of their own, and each chapter its own title. The outermost line may also have a number
that counts on from page to page, beside the title of a section that is no longer than its page.
"""

import re
from collections.abc import Iterator, Sequence

MAX_LINES = 3
"""At either end of a page."""

NEAR_PAGES = 2
"""So far away another page has the same line: heads of left and right pages take turns."""

MAX_CHARS = 160

MIN_COUNTED = 2
"""So many pages near by are counted on from one."""

_COUNT = re.compile(r"^\D{0,3}?(\d{1,4})\b|\b(\d{1,4})\W{0,3}$")
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
    outermost = [list(filter(_key, end[:1])) for end in ends]
    begun = [_begun(lines, number) for number, lines in enumerate(outermost)]
    for number, own in enumerate(keys):
        around = _near(number, len(keys))
        near = {key for other in around for key in keys[other]}
        counted = sum(bool(begun[other] & begun[number]) for other in around)
        first = 1 if counted >= MIN_COUNTED else 0
        text = (at for at, key in enumerate(own) if at >= first and (not key or key not in near))
        yield next(text, len(own))


def _near(number: int, pages: int) -> list[int]:
    around = range(max(0, number - NEAR_PAGES), min(pages, number + 1 + NEAR_PAGES))
    return [other for other in around if other != number]


def _begun(lines: Sequence[str], number: int) -> frozenset[int]:
    """Return which page was the first, by the numbers at either end of a line of this one."""
    found = (pair for line in lines for pair in _COUNT.findall(line.strip()))
    return frozenset(int(one) - number for pair in found for one in pair if one)


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
