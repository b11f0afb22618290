"""The assignment of chunks to sources, while an artifact is fetched from several at once. Pure.

Owns the rules: a chunk is requested from one source at a time; batches get smaller towards the end,
so that no source is left with a large one; an overdue chunk may be requested from another source;
a chunk that its source can't deliver is free again. The source chooses among the free chunks
(`seeding_order`).
"""

from dataclasses import dataclass
from typing import Final

from jupiterd.store.bitmap import each, of

OVERDUE_S: Final = 1.0
"""Once no chunk is free, a batch that stalls for so many seconds is requested elsewhere too."""

FIRST_BATCH_BYTES: Final = 2 << 20
"""First batches are small: their answers name the other nodes that fetch the same artifact."""

MIN_BATCH_BYTES: Final = 1 << 20
MAX_BATCH_BYTES: Final = 8 << 20
"""What a seed has promised to one, no other gets, so it promises little at once. But each batch
costs two calls, between 1 and 2 ms of processor time at both ends together."""

MAX_BATCH_ALONE_BYTES: Final = 16 << 20
BATCHES_OF_A_SOURCE: Final = 4
"""The remaining bytes are cut into this many batches for each source."""


@dataclass
class _Batch:
    source: int
    moved_s: float
    """When it was requested, or last delivered a chunk."""
    left: int


class ChunkScheduler:
    """The missing chunks of one artifact, and the source of each requested one."""

    def __init__(self, missing: int, chunk_bytes: int) -> None:
        """`chunk_bytes` is a chunk's usual size."""
        self.missing = missing
        self._chunk_bytes = chunk_bytes
        self._batches: list[_Batch] = []
        self._claimed_times = 0

    def wanted(self, source: int, now_s: float) -> int:
        """Return the chunks to request from this source: free ones, or else overdue ones."""
        free = self.missing & ~self._claimed()
        return free or self._overdue(source, now_s)

    def overdue_at_s(self, source: int) -> float | None:
        """Return when another source's batch becomes overdue; None where none can."""
        times = [batch.moved_s for batch in self._batches if batch.source != source]
        return min(times) + OVERDUE_S if times else None

    def batch_bytes(self, wanted: int, sources: int) -> int:
        """Return the bytes of the next batch, with so many sources in use."""
        left_bytes = wanted.bit_count() * self._chunk_bytes
        fair_bytes = left_bytes // (BATCHES_OF_A_SOURCE * max(1, sources))
        most_bytes = MAX_BATCH_BYTES if sources > 1 else MAX_BATCH_ALONE_BYTES
        begins_bytes = FIRST_BATCH_BYTES << min(self._claimed_times, 8)
        return max(MIN_BATCH_BYTES, min(fair_bytes, most_bytes, begins_bytes))

    def claim(self, source: int, chunks: list[int], now_s: float) -> list[int]:
        """Assign the chunks that a source offers; return, in order, those that it shall deliver."""
        taken = of(chunks) & self.wanted(source, now_s)
        if taken:
            self._claimed_times += 1
            self._batches.append(_Batch(source, now_s, taken))
        return list(each(taken))

    def arrived(self, chunks: int, now_s: float) -> None:
        """Note that these chunks arrived, from whatever source."""
        self.missing &= ~chunks
        for batch in self._batches:
            if batch.left & chunks:
                batch.left, batch.moved_s = batch.left & ~chunks, now_s
        self._batches = [batch for batch in self._batches if batch.left]

    def release(self, source: int, chunks: int | None = None) -> None:
        """Free chunks that a source won't deliver: these, or all that it was assigned."""
        for batch in self._batches:
            if batch.source == source:
                batch.left &= 0 if chunks is None else ~chunks
        self._batches = [batch for batch in self._batches if batch.left]

    def _claimed(self) -> int:
        claimed = 0
        for batch in self._batches:
            claimed |= batch.left
        return claimed

    def _overdue(self, source: int, now_s: float) -> int:
        own = late = 0
        for batch in self._batches:
            if batch.source == source:
                own |= batch.left
            elif now_s - batch.moved_s >= OVERDUE_S:
                late |= batch.left
        return late & ~own
