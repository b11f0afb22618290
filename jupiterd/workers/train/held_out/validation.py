"""The loss on held-out text: of development, which the gate never judges, wherever there is some.

Where there is none it is that of the gate's text, for people to see: nothing may be decided by it.

Owns each rank's part of it. Doesn't know which tokens that are (`held_out_tokens`), how a loss is
computed (`engine`), when it is asked for, or what is decided by it (`cycle.training`). Nothing of
what training goes on with is changed by it.

All ranks take part, by the shares that they train with, so that none of them waits for long.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from jupiterd.cycle.training.batch_shares import Shares
from jupiterd.cycle.training.partition.pass_count import pass_count, slices
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.train.batches import cut
from jupiterd.workers.train.held_out.held_out_tokens import HeldOutTokens, held_out_tokens
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine


class Validation:
    """One rank's part of it; every rank asks for the loss after the same steps."""

    def __init__(
        self,
        held_out: Sequence[Path],
        tokenizer: Path,
        seq_len: int,
        most: int,
        micro_batch: int,
        *,
        documents_apart: bool = False,
    ) -> None:
        """Take the folders of what was held out; none: there is no such loss.

        documents_apart: no token sees another document than its own, as in training
        """
        self._held_out = held_out
        self._tokenizer = tokenizer
        self._seq_len = seq_len
        self._most = most
        self._micro_batch = micro_batch
        self._documents_apart = documents_apart
        self.loss_on = ""
        """What counts of conversations, as in training: `answers`, unless told, or `all`."""
        self._read: HeldOutTokens | None = None
        self.together: Sequence[int] = ()
        """Where a model is cut over the ranks: the micro batch of each."""

    @property
    def bytes_per_token(self) -> float:
        """Return that of the text that was scored; 0 until something was."""
        return 0.0 if self._read is None else self._read.bytes_per_token

    @property
    def may_decide(self) -> bool:
        """Say whether what was scored is development text; known once something was."""
        return self._read is not None and self._read.may_decide

    def loss(self, engine: TrainingEngine, shares: Shares) -> float | None:
        """Return the mean over the tokens, in nats; None where there is nothing to score."""
        if not self._held_out:
            return None
        if self.together and not self._all_can_read(engine):
            return None
        parts = engine.gather(self._part(engine, shares))
        nats, tokens = (sum(column) for column in zip(*parts, strict=True))
        return nats / tokens if tokens and math.isfinite(nats) else None

    def _part(self, engine: TrainingEngine, shares: Shares) -> tuple[float, float]:
        """Return this rank's sum of losses, and over how many tokens.

        No number where the text can't be read here: no other rank may wait for this one.
        """
        try:
            read = self._tokens()
        except CorruptArtifactError as error:
            print(f"no validation loss: {error.message}")  # noqa: T201 - the worker's log
            return math.nan, 0.0
        ends = [len(read.tokens) * end // sum(shares) for end in (0, *accumulate(shares))]
        first, last = ends[engine.rank], ends[engine.rank + 1]
        counts = [end - start for start, end in pairwise(ends)]
        batches = list(self._micro_batches(read, first, last, counts))
        return engine.nats(batches), float(read.targets(first, last))

    def _all_can_read(self, engine: TrainingEngine) -> bool:
        """Say whether each rank has the text: none may pass anything through without the others."""
        try:
            can_read = bool(len(self._tokens().tokens))
        except CorruptArtifactError as error:
            print(f"no validation loss: {error.message}")  # noqa: T201 - the worker's log
            can_read = False
        return all(there for (there,) in engine.gather([float(can_read)]))

    def _micro_batches(
        self, read: HeldOutTokens, first: int, last: int, counts: Sequence[int]
    ) -> Iterator[MicroBatch]:
        """Yield this rank's stretch of the text; counts: sequences of each rank."""
        size = self._micro_batch
        parts = [slice(at, min(last, at + size)) for at in range(first, last, size)]
        if self.together:
            ours = slices(last - first, pass_count(counts, self.together))
            parts = [slice(first + part.start, first + part.stop) for part in ours]
        documents = read.documents if self._documents_apart else None
        text = MicroBatch(read.tokens[:, :-1], read.tokens[:, 1:], documents, read.counted)
        yield from (cut(text, part) for part in parts)

    def _tokens(self) -> HeldOutTokens:
        if self._read is None:
            self._read = held_out_tokens(
                self._held_out, self._tokenizer, self._seq_len, self._most, self.loss_on
            )
        return self._read
