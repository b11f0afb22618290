"""The sequences of each step, and each rank's part of them.

Owns the mapping from (step, rank) to a batch of token ids. Doesn't know models, engines or process
groups. The global batch of a step depends on the manifest, the seed and the cursor alone, never on
the ranks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Self

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.base.positions import Range, split
from jupiterd.cycle.training.batch_shares import Shares, equal_shares
from jupiterd.cycle.training.partition.pass_count import pass_count, slices
from jupiterd.workers.tokens.document_masks import documents_of_inputs, own_documents
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.dropout_mask import token_keys
from jupiterd.workers.train.sequence_order import SequenceOrder
from jupiterd.workers.training_engine import MicroBatch


@dataclass(frozen=True)
class RankBatches:
    """The batches of one rank."""

    shards: ShardSet
    seed: str
    """Key of the order: the plan's seed and the round."""
    batch_sequences: int
    micro_batch_sequences: int
    rank: int = 0
    world_size: int = 1
    documents_apart: bool = False
    """Attention is confined to a token's own document."""
    has_dropout: bool = False
    """An adapter's dropout is told what it follows from."""
    first_step: int = 0
    """The step whose batch is the first of `positions`."""
    positions: Sequence[Range] | None = None
    """Ranges of the shuffled order to train on; None: all of it."""
    together: Sequence[int] = ()
    """Where a model is cut over the ranks: the micro batch of each; all make as many passes."""

    def through(self, positions: Sequence[Range], first_step: int, batch_sequences: int) -> Self:
        """Return the batches of a stretch of steps from that one on, at these positions alone."""
        return replace(
            self, positions=positions, first_step=first_step, batch_sequences=batch_sequences
        )

    def of_step(self, step: int, shares: Shares) -> Iterator[MicroBatch]:
        """Yield the micro batches of this rank's part in a step."""
        return self.at((step - self.first_step) * self.batch_sequences, shares)

    def at(self, cursor: int, shares: Shares | None = None) -> Iterator[MicroBatch]:
        """Yield the micro batches of this rank's part.

        The global batch begins at index `cursor` of the positions; ranks take consecutive slices,
        as long as `shares` says, or equal ones.
        """
        shares = shares or equal_shares(self.batch_sequences, self.world_size)
        first = sum(shares[: self.rank])
        numbers = self._numbers(cursor + first, shares[self.rank])
        tokens, documents = self.shards.sequences_at(numbers), self._documents(numbers)
        counted, in_step = self.shards.counted_at(numbers), self.counted_in(cursor, sum(shares))
        keys = self._token_keys(cursor + first, shares[self.rank])
        mine = MicroBatch(tokens[:, :-1], tokens[:, 1:], documents, counted, in_step, keys)
        parts = _parts(len(numbers), self.micro_batch_sequences)
        if self.together:
            parts = slices(len(numbers), pass_count(shares, self.together))
        yield from (cut(mine, part) for part in parts)

    def counted_in(self, first: int, count: int) -> int:
        """Return how many targets of so many of the positions count; 0: all of them.

        Every rank reads the bits of all: so all divide by the same number.
        """
        if not self.shards.index.loss_mask:
            return 0
        found = self.shards.counted_at(self._numbers(first, count))
        return 0 if found is None else int(found.sum())

    def _numbers(self, first: int, count: int) -> NDArray[np.int64]:
        """Return the sequences at so many of the positions."""
        order = _order_of(self.shards.sequences, self.seed)
        ranges = self._ranges(first, count)
        return np.concatenate([order.at(start, end - start) for start, end in ranges])

    def _token_keys(self, first: int, count: int) -> NDArray[np.uint32] | None:
        if not self.has_dropout:
            return None
        positions = [np.arange(*each, dtype=np.int64) for each in self._ranges(first, count)]
        return token_keys(self.seed, np.concatenate(positions), self.shards.seq_len)

    def _ranges(self, first: int, count: int) -> Sequence[Range]:
        """Return so many of the positions, as ranges of the whole order."""
        if self.positions is None:
            return [(first, first + count)]
        return split(self.positions, (first, count))[1]

    def _documents(self, numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the document of each input, where they are kept apart."""
        if not self.documents_apart:
            return None
        found = self.shards.documents_at(numbers)
        return own_documents(found) if self.shards.index.loss_mask else documents_of_inputs(found)


def cut(batch: MicroBatch, part: slice) -> MicroBatch:
    """Return some of a batch's sequences; where they are none, one that doesn't count at all."""
    is_empty = part.start == part.stop
    taken = slice(0, 1) if is_empty else part
    counted = None if batch.counted is None else batch.counted[taken]
    return MicroBatch(
        batch.inputs[taken],
        batch.targets[taken],
        None if batch.documents is None else batch.documents[taken],
        np.zeros_like(batch.targets[taken], dtype=np.bool_) if is_empty else counted,
        batch.counted_in_step,
        None if batch.token_keys is None else batch.token_keys[taken],
    )


def _parts(count: int, most: int) -> Iterator[slice]:
    """Yield as few parts as can be, none longer than `most`, and all about alike.

    A short one beside long ones takes as long to begin and to end as they do.
    """
    many = math.ceil(count / most)
    bounds = [count * n // many for n in range(many + 1)]
    return starmap(slice, pairwise(bounds))


@lru_cache(maxsize=1)
def _order_of(sequences: int, seed: str) -> SequenceOrder:
    return SequenceOrder(sequences, seed)
