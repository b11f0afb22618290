"""The bounds of every number that comes from outside: in a message, an entry, a snapshot, an order.

Owns them, and how numbers that only grow go on from what others have told. Doesn't know what a
number counts, or what becomes of whoever told one that is too large.

A term, an index, a count within its bound can be written by each of our encoders (protobuf,
msgpack, SQLite, JSON), and so can its successor and the sum of a thousand. What only grows (a term,
the number of an attempt) grows by small steps: whoever could name the largest one at once would
leave no room for the next, for everybody and for good.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

MAX_NUMBER: Final = 2**53 - 1
"""Of every whole number: those up to it are exact in JSON and as a float, too."""

MAX_REAL: Final = 1e30
"""Of every other one: its square is still a number, and so is it where 32 bits hold it."""

MAX_WIDE: Final = 2**64 - 1
"""Of a whole number that is a key or a place and counts nothing: what msgpack holds."""

MAX_STEP: Final = 2**20
"""A term isn't believed that lies further above the highest one known. An election takes a second:
so many take twelve days without a pause."""

REGAINED: Final = 2**10
"""At each tick: so much further may it grow by what others tell. Who tells ever greater ones drives
all of a cluster no faster than all of it can hear, and needs a million years to the bound."""

MAX_DEPTH: Final = 16
"""How deep lists and maps of plain values may be nested."""


def is_count(number: int) -> bool:
    """Say whether a whole number is within the bounds; negative ones are, as far as positive."""
    return -MAX_NUMBER <= number <= MAX_NUMBER


def is_real(number: float) -> bool:
    """Say whether it is a number at all, and within the bounds."""
    return -MAX_REAL <= number <= MAX_REAL


def is_bounded(value: object, most: int = MAX_NUMBER, depth: int = MAX_DEPTH) -> bool:
    """Say whether every number in plain values is within the bounds, however deep it lies.

    most: of whole numbers. A float that is no number, or infinite, passes: it says that nobody
    knows, and every encoder but JSON's can write it (`document_schema.finite`).
    """
    if isinstance(value, int):
        return -most <= value <= most
    if isinstance(value, float):
        return not math.isfinite(value) or is_real(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        parts = [part for pair in pairs for part in pair]
    elif isinstance(value, list | tuple):
        parts = list(cast("Sequence[object]", value))
    else:
        return True
    return depth > 0 and all(is_bounded(part, most, depth - 1) for part in parts)


def is_near(term: int, known: int) -> bool:
    """Say whether a term is one that a cluster can have come to whose highest one known is that."""
    return 0 <= term <= min(known + MAX_STEP, MAX_NUMBER)


def climbed(numbers: Iterable[int]) -> int:
    """Return the highest of these numbers that small steps lead to from 0; 0 where none does."""
    highest = 0
    for number in sorted(numbers):
        if not is_near(number, highest):
            break
        highest = max(highest, number)
    return highest


def edit_after(edit: int) -> int:
    """Return the edit number of what replaces a setting of that one.

    At the bound it stays: of two settings with the same number the later entry's is in force.
    """
    return min(edit + 1, MAX_NUMBER)
