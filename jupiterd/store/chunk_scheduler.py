"""Which chunks to ask whom for, while an artifact is gathered from several at once. Pure.

Owns the rules: a chunk is asked of one source at a time; batches get smaller towards the end, so
that nobody is left waiting for one; what a source holds back may be asked of another;
what a source was given and can't bring is free again. Which of the free chunks a source gives is
its own choice (`seeding_order`).
"""

from dataclasses import dataclass
from typing import Final

from jupiterd.store.bitmap import each, of

OVERDUE_S: Final = 1.0
"""Once nothing is free any more, a batch that hasn't moved for so long is asked of another, too."""

FIRST_BATCH_BYTES: Final = 2 << 20
"""The first ones are small: who else fetches the same is heard with the first answers."""

MIN_BATCH_BYTES: Final = 1 << 20
MAX_BATCH_BYTES: Final = 8 << 20
"""What a seed has promised to one, no other gets, so it promises little at once. But each batch
costs two calls, between 1 and 2 ms of processor time at both ends together."""

MAX_BATCH_ALONE_BYTES: Final = 16 << 20
BATCHES_OF_A_SOURCE: Final = 4
"""The rest is cut into so many batches for each source."""


@dataclass
class _Batch:
    source: int
    moved_s: float
    """When it was asked for, or last brought anything."""
    left: int


class ChunkScheduler:
    """What is missing of one artifact, and who was asked for what."""

    def __init__(self, missing: int, chunk_bytes: int) -> None:
        """`chunk_bytes` is a chunk's usual size."""
        self.missing = missing
        self._chunk_bytes = chunk_bytes
        self._batches: list[_Batch] = []
        self._claimed_times = 0

    def wanted(self, source: int, now_s: float) -> int:
        """Return what this source may be asked for: what is free, or else what is overdue."""
        free = self.missing & ~self._claimed()
        return free or self._overdue(source, now_s)

    def overdue_at_s(self, source: int) -> float | None:
        """Return when anything of the others' will be overdue; None where nothing can be."""
        times = [batch.moved_s for batch in self._batches if batch.source != source]
        return min(times) + OVERDUE_S if times else None

    def batch_bytes(self, wanted: int, sources: int) -> int:
        """Return how much to ask of one of so many sources at once."""
        left_bytes = wanted.bit_count() * self._chunk_bytes
        fair_bytes = left_bytes // (BATCHES_OF_A_SOURCE * max(1, sources))
        most_bytes = MAX_BATCH_BYTES if sources > 1 else MAX_BATCH_ALONE_BYTES
        begins_bytes = FIRST_BATCH_BYTES << min(self._claimed_times, 8)
        return max(MIN_BATCH_BYTES, min(fair_bytes, most_bytes, begins_bytes))

    def claim(self, source: int, chunks: list[int], now_s: float) -> list[int]:
        """Take what a source offers; return, in order, those that it is to bring."""
        taken = of(chunks) & self.wanted(source, now_s)
        if taken:
            self._claimed_times += 1
            self._batches.append(_Batch(source, now_s, taken))
        return list(each(taken))

    def arrived(self, chunks: int, now_s: float) -> None:
        """Take note that these are here, whoever brought them."""
        self.missing &= ~chunks
        for batch in self._batches:
            if batch.left & chunks:
                batch.left, batch.moved_s = batch.left & ~chunks, now_s
        self._batches = [batch for batch in self._batches if batch.left]

    def release(self, source: int, chunks: int | None = None) -> None:
        """Give free what a source won't bring: these chunks, or all of its own."""
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
