"""Which chunks of an artifact a node hands out next. Pure.

Owns the rule: of what an asker lacks, those that went out least often, so that a seed sends each
chunk once before any twice and what is rare spreads first. Doesn't know the askers: they hand on
what they got, and whoever is slow or dies is made up for by the second time round.
"""

from collections.abc import Callable, Iterable
from typing import Final

from jupiterd.store.bitmap import each, of

MAX_TIMES: Final = 64
"""Whatever went out more often counts as if it had gone out so often."""

MAX_CHUNKS: Final = 4096
"""Named at once, however small they are."""


class SeedingOrder:
    """How often each chunk of one artifact went out."""

    def __init__(self) -> None:
        self._more_than: list[int] = []
        """At k: the chunks that went out more than k times; each holds all that follow."""

    def draw(self, wanted: int, size_of: Callable[[int], int], max_bytes: int) -> list[int]:
        """Return some of the wanted chunks, in their order, and count them as gone out.

        They are `max_bytes` together at most; but where any is wanted, there is one.
        """
        chosen: list[int] = []
        for number in self._by_rarity(wanted):
            max_bytes -= size_of(number)
            if chosen and (max_bytes < 0 or len(chosen) == MAX_CHUNKS):
                break
            chosen.append(number)
        self._count(of(chosen))
        return sorted(chosen)

    def _by_rarity(self, wanted: int) -> Iterable[int]:
        for went_out in (*self._more_than, 0):
            yield from each(wanted & ~went_out)
            wanted &= went_out

    def _count(self, chosen: int) -> None:
        for times, went_out in enumerate(self._more_than):
            self._more_than[times], chosen = went_out | chosen, went_out & chosen
        if chosen and len(self._more_than) < MAX_TIMES:
            self._more_than.append(chosen)
