"""How many of the documents that a look had no time for would be kept, and between what bounds.

Pure. Owns that reckoning, from what became of those that were read. Doesn't know how anything is
read, or what is held out of it.

A document is taken to be like those that were read of its ending; endings of which few were read
are taken together, for files that are few are like each other sooner than like all the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LEAST_READ: Final = 5
"""Of an ending; one of which fewer were read is rare."""

RARE: Final = "*"
"""What stands for every rare ending, and for that of a document that couldn't be read at all."""

ERRORS: Final = 1.28
"""The bounds lie so many standard errors apart from what is likely: four times of five the true
share is between them."""


class UnreadCase(StrEnum):
    """What may be true of the documents that weren't read."""

    LIKELY = "likely"
    FEWEST = "fewest"
    """As few are kept as may be."""
    MOST = "most"


@dataclass(frozen=True)
class ReadDocument:
    """One document that was read, and what became of it."""

    name: str
    """By which those that weren't read are matched with it: the ending of its file."""
    retained_bytes: int
    """0: it is dropped."""


def retained_shares(
    read: Sequence[ReadDocument], case: UnreadCase = UnreadCase.LIKELY
) -> Mapping[str, float]:
    """Return the share kept of each ending, and under RARE of all rare ones."""
    names = {each.name for each in read} - {RARE}
    cells = {name: [each for each in read if each.name == name] for name in names}
    common = {name: cell for name, cell in cells.items() if len(cell) >= LEAST_READ}
    rare = [each for each in read if each.name not in common]
    shares = {
        name: _within(_count_retained(cell), len(cell), case) for name, cell in common.items()
    }
    # Where hardly any was read all documents count, too, as much as one.
    share = _count_retained(read) / len(read) if read else 0.0
    return {
        **shares,
        RARE: _within(_count_retained(rare) + share, len(rare) + 1, case) if read else 0.0,
    }


def thinned(names: Sequence[str], shares: Mapping[str, float]) -> list[int]:
    """Return which of these are taken to be kept, by position, evenly spread.

    names: the endings of documents that weren't read
    """
    owed: dict[str, float] = {}
    found: list[int] = []
    for position, name in enumerate(names):
        cell = name if name in shares else RARE
        owed[cell] = owed.get(cell, 0.5) + shares[cell]
        if owed[cell] >= 1.0:
            owed[cell] -= 1.0
            found.append(position)
    return found


def _count_retained(read: Sequence[ReadDocument]) -> int:
    return sum(each.retained_bytes > 0 for each in read)


def _within(retained: float, read: int, case: UnreadCase) -> float:
    """Return the share that is kept, or a bound of it (Wilson's)."""
    share = retained / read
    if case is UnreadCase.LIKELY:
        return share
    z = ERRORS
    middle = share + z * z / (2 * read)
    half = z * math.sqrt(share * (1 - share) / read + z * z / (4 * read * read))
    bound = middle - half if case is UnreadCase.FEWEST else middle + half
    return min(1.0, max(0.0, bound / (1 + z * z / read)))
