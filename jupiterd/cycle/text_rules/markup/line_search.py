"""Where the next line with a certain text is: each text is looked for once in all lines.

Owns that memory. Without it a text with a thousand elements that are never closed is read to its
end a thousand times. Doesn't know any markup.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable


class SearchedLines(list[str]):
    """Lines that nobody changes any more."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Take the lines."""
        super().__init__(lines)
        self._lower: list[str] | None = None
        self._holding: dict[str, list[int]] = {}
        self._equal: dict[str, list[int]] | None = None

    def next_holding(self, text: str, at: int) -> int | None:
        """Return the number of the first line from there on that has a text in it, in any case.

        It is for a few texts alone: all lines are looked through for each.
        """
        wanted = text.lower()
        if wanted not in self._holding:
            if self._lower is None:
                self._lower = [line.lower() for line in self]
            self._holding[wanted] = [n for n, line in enumerate(self._lower) if wanted in line]
        return _first(self._holding[wanted], at)

    def next_equal(self, line: str, at: int, matches: Callable[[str], object]) -> int | None:
        """Return the number of the first line from there on that is this one but for blanks behind.

        Args:
            line: what is looked for.
            at: where to begin.
            matches: says whether a line is ever looked for; the others are not indexed.
        """
        if self._equal is None:
            self._equal = {}
            for number, own in enumerate(self):
                if matches(own):
                    self._equal.setdefault(own.rstrip(), []).append(number)
        return _first(self._equal.get(line, []), at)


def _first(numbers: list[int], at: int) -> int | None:
    place = bisect_left(numbers, at)
    return numbers[place] if place < len(numbers) else None
