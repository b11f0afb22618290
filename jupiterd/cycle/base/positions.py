"""Which positions of the data's order are still to be trained on, where some were given back.

Owns that list. Doesn't know islands, rounds or shards. Islands take ranges; what an island that was
lost had taken comes back, and goes out again before anything new: once in the committed weights,
whoever trains on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from jupiterd.errors import Bug

Range = tuple[int, int]
"""Positions [first, end)."""


@dataclass(frozen=True)
class Positions:
    """All positions from `cursor` on, and before it those that came back."""

    cursor: int = 0
    returned: tuple[Range, ...] = ()
    """In their order, none touching another."""

    def take(self, count: int) -> tuple[tuple[Range, ...], Self]:
        """Return the next so many positions, and what is left then."""
        new = max(0, count - sum(end - first for first, end in self.returned))
        cursor = self.cursor + new
        all_of_them = [*self.returned, *([(self.cursor, cursor)] if new else [])]
        taken, left = _cut(all_of_them, count)
        return tuple(taken), type(self)(cursor, tuple(left))

    def give_back(self, ranges: Iterable[Range]) -> Self:
        """Return what there is to take once these came back.

        Raises:
            Bug: they weren't taken, or came back already.
        """
        joined: list[Range] = []
        for first, end in sorted((*self.returned, *ranges)):
            if (joined and first < joined[-1][1]) or not 0 <= first < end <= self.cursor:
                raise Bug(f"positions {first} to {end} weren't taken")
            if joined and first == joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((first, end))
        return type(self)(self.cursor, tuple(joined))


def split(ranges: Iterable[Range], counts: Iterable[int]) -> list[tuple[Range, ...]]:
    """Cut ranges into consecutive parts of so many positions each.

    Raises:
        Bug: there are fewer positions than that.
    """
    parts: list[tuple[Range, ...]] = []
    rest = list(ranges)
    for count in counts:
        part, rest = _cut(rest, count)
        parts.append(tuple(part))
    return parts


def _cut(ranges: list[Range], count: int) -> tuple[list[Range], list[Range]]:
    """Return the first so many positions, and the rest."""
    for number, (first, end) in enumerate(ranges):
        if count < end - first:
            part = [(first, first + count)] if count else []
            return [*ranges[:number], *part], [(first + count, end), *ranges[number + 1 :]]
        count -= end - first
    if count:
        raise Bug("there are fewer positions than were to be given out")
    return ranges, []


def written(ranges: Iterable[Range]) -> str:
    """Return ranges as a fact has them: `0-320,400-420`."""
    return ",".join(f"{first}-{end}" for first, end in ranges)


def read(text: str) -> tuple[Range, ...]:
    """Return the ranges that `written` wrote.

    Raises:
        Bug: it didn't.
    """
    try:
        pairs = [part.split("-") for part in text.split(",") if part]
        return tuple((int(first), int(end)) for first, end in pairs)
    except ValueError as error:
        raise Bug(f"{text[:80]!r} aren't positions") from error


def at(ranges: Iterable[Range], index: int) -> int:
    """Return the position that stands at an index of these ranges, one after the other.

    Raises:
        Bug: it lies beyond them.
    """
    for first, end in ranges:
        if index < end - first:
            return first + index
        index -= end - first
    raise Bug("an index lies beyond the positions")
