"""Which sequences each step trains on, and each rank's part of them.

Owns the way from (step, rank) to a batch of token ids. Doesn't know models, engines or groups. The
global batch of a step depends on nothing but the manifest, the seed and the cursor: never on the
ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.permutation import sequences_at
from jupiterd.cycle.shares import Shares, equal_shares
from jupiterd.workers.data.shards import ShardSet
from jupiterd.workers.train.engine import MicroBatch


@dataclass(frozen=True)
class Batches:
    """The batches of one rank."""

    shards: ShardSet
    seed: str
    """Key of the order: the plan's seed and the round."""
    batch_sequences: int
    micro_batch_sequences: int
    rank: int = 0
    world_size: int = 1

    def at(self, cursor: int, shares: Shares | None = None) -> Iterator[MicroBatch]:
        """Yield (inputs, targets), each int64[micro batch, seq_len], of this rank's part.

        The global batch begins at position `cursor` of the order; ranks take consecutive slices, as
        long as `shares` says, or equal ones.
        """
        shares = shares or equal_shares(self.batch_sequences, self.world_size)
        first = sum(shares[: self.rank])
        last = first + shares[self.rank]
        for start in range(first, last, self.micro_batch_sequences):
            count = min(self.micro_batch_sequences, last - start)
            tokens = self._tokens(cursor + start, count)
            yield tokens[:, :-1], tokens[:, 1:]

    def _tokens(self, start: int, count: int) -> NDArray[np.int64]:
        numbers = sequences_at(start, count, self.shards.sequences, self.seed)
        return np.stack([self.shards.sequence(number) for number in numbers])
