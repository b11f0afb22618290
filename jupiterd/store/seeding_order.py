"""The order in which a node hands out the chunks of an artifact. Pure.

Owns the rule: of the chunks that a peer lacks, those that were handed out least often. A seed thus
sends each chunk once before any twice, and rare chunks spread first. Doesn't know the peers: they
pass on what they got, and the second pass replaces what a slow or dead one didn't.
"""

from collections.abc import Callable, Iterable
from typing import Final

from jupiterd.store.bitmap import each, of

MAX_TIMES: Final = 64
"""Counts are capped at this number."""

MAX_CHUNKS: Final = 4096
"""Chunks in one answer at most, however small they are."""


class SeedingOrder:
    """Counts how often each chunk of one artifact was handed out."""

    def __init__(self) -> None:
        self._more_than: list[int] = []
        """[k]: bits of the chunks handed out more than k times; each includes all that follow."""

    def draw(self, wanted: int, size_of: Callable[[int], int], max_bytes: int) -> list[int]:
        """Return some of the wanted chunks, sorted, and count them as handed out.

        Together they have at most `max_bytes`, but where any is wanted at least one is returned.

        wanted: bit set of chunk numbers; size_of: chunk number -> bytes
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
