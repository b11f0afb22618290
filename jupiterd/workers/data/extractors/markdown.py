"""Blocks written as Markdown, and which blocks of a page are its text.

Owns both. Doesn't know how blocks are found (`leaves`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from jupiterd.workers.data.extractors.leaves import TextLeaf

MIN_TELLING_CHARS = 16
"""A shorter block may be found anywhere by chance."""

MIN_REGION = 0.9
"""Share of what was recognised as text that the region of the text holds."""

MAX_LINKED = 0.5
"""Of the characters of a block: more are links, and it lists where to go."""

_PIECE_CHARS, _MAX_PIECES = 20, 40
_NO_LETTER = re.compile(r"[\W_]+")
_NO_ASCII_LETTER = bytes(code for code in range(128) if not chr(code).isalnum())
_LOWER = bytes(range(256)).lower()


def written(leaves: Iterable[TextLeaf]) -> str:
    """Return blocks as one text."""
    pieces: list[str] = []
    before: TextLeaf | None = None
    for leaf in leaves:
        begins = any(not item.is_begun for item in leaf.items)
        is_tight = before is not None and begins and bool(before.items) and not before.is_code
        pieces.append("" if before is None else "\n" if is_tight else "\n\n")
        pieces.append(_with_items(leaf))
        before = leaf
    return "".join(pieces)


def _with_items(leaf: TextLeaf) -> str:
    first = "".join(item.rest if item.is_begun else item.marker for item in leaf.items)
    rest = "".join(item.rest for item in leaf.items)
    for item in leaf.items:
        item.is_begun = True
    lines = leaf.text.split("\n")
    return "\n".join([first + lines[0], *(f"{rest}{line}".rstrip() for line in lines[1:])])


def text_of_page(leaves: Sequence[TextLeaf], recognised: str) -> list[TextLeaf]:
    """Return the blocks that are the text of a page, whole.

    Args:
        leaves: all blocks of the page.
        recognised: what a library took for its text, some words of which it may have lost.
    """
    whole = _squeezed(recognised)
    keys = [_squeezed(leaf.text) for leaf in leaves]
    is_found = [_is_in(key, whole) for key in keys]
    region = _region([leaf for leaf, found in zip(leaves, is_found, strict=True) if found])
    return [
        leaf
        for leaf, key, found in zip(leaves, keys, is_found, strict=True)
        if found or (_belongs(leaf, key, whole) and _is_inside(leaf.element, region))
    ]


def _is_in(key: str, whole: str) -> bool:
    """Say whether most of a block is there; a library may have lost some of it."""
    if len(key) < MIN_TELLING_CHARS:
        return False
    if key in whole:
        return True
    starts = range(0, len(key), _PIECE_CHARS)[:_MAX_PIECES]
    wanted = (len(starts) + 1) // 2
    spared = len(starts) - wanted
    for start in starts:
        if key[start : start + _PIECE_CHARS] in whole:
            wanted -= 1
        else:
            spared -= 1
        if wanted == 0 or spared < 0:
            break
    return wanted == 0


def _squeezed(text: str) -> str:
    """Return the letters and digits alone, in lower case."""
    if text.isascii():
        return text.encode().translate(_LOWER, _NO_ASCII_LETTER).decode()
    return _NO_LETTER.sub("", text).lower()


def _region(found: Sequence[TextLeaf]) -> Any:  # noqa: ANN401 - lxml has no types
    """Return the smallest element that holds nearly all blocks that were recognised."""
    chars: Counter[Any] = Counter()
    for leaf in found:  # a lone paragraph has a heading beside it
        chars[leaf.element.getparent()] += len(leaf.text)
    least = MIN_REGION * chars.total()
    held: Counter[Any] = Counter()
    for parent, number in chars.items():
        if parent is not None:
            held.update(dict.fromkeys((parent, *parent.iterancestors()), number))
    holders = [element for element, number in held.items() if number >= least]
    return max(holders, key=lambda element: sum(1 for _ in element.iterancestors()), default=None)


def _belongs(leaf: TextLeaf, key: str, whole: str) -> bool:
    if leaf.is_framed:
        return False
    return leaf.link_chars <= MAX_LINKED * len(leaf.text) or key in whole


def _is_inside(element: Any, region: Any) -> bool:  # noqa: ANN401
    while element is not None and element is not region:
        element = element.getparent()
    return element is not None
