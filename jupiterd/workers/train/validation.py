"""The loss on held-out text: of development, which the gate never judges, wherever there is some.

Where there is none it is that of the gate's text, for people to see: nothing may be decided by it.

Owns which tokens that are, and each rank's part of them. Doesn't know how a loss is computed
(`engine`), when it is asked for, or what is decided by it (`cycle.training`). Nothing of what
training goes on with is changed by it.

All ranks take part, by the shares that they train with, so that none of them waits for long.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from jupiterd.cycle.shares import Shares
from jupiterd.cycle.split import DEV, GATE, held_out_part
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.data.sample_file import read_all
from jupiterd.workers.data.tokenizer import END_OF_TEXT, encode_batch, load_tokenizer
from jupiterd.workers.train.engine import Engine, MicroBatch

DOCUMENTS_PER_SEQUENCE = 4
"""No more documents are read than that: some are shorter than a sequence."""

CHARACTERS_PER_TOKEN = 16
"""Hardly any text has more: longer ones are cut before they are encoded."""


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
        self._tokens: NDArray[np.int64] | None = None
        self._end: int | None = None
        """The end mark."""
        self.bytes_per_token = 0.0
        """Of the text that was scored, its end marks counted; known once something was."""
        self.may_decide = False
        """What was scored is development text; known once something was scored."""

    def loss(self, engine: Engine, shares: Shares) -> float | None:
        """Return the mean over the tokens, in nats; None where there is nothing to score."""
        if not self._held_out:
            return None
        parts = engine.gather(self._part(engine, shares))
        nats, tokens = (sum(column) for column in zip(*parts, strict=True))
        return nats / tokens if tokens and math.isfinite(nats) else None

    def _part(self, engine: Engine, shares: Shares) -> tuple[float, float]:
        """Return this rank's sum of losses, and over how many tokens.

        No number where the text can't be read here: no other rank may wait for this one.
        """
        try:
            sequences = self._sequences()
        except CorruptArtifactError as error:
            print(f"no validation loss: {error.message}")  # noqa: T201 - the worker's log
            return math.nan, 0.0
        ends = [0, *accumulate(shares)]
        first, last = (
            len(sequences) * end // ends[-1] for end in (ends[engine.rank], ends[engine.rank + 1])
        )
        mine = sequences[first:last]
        return engine.nats(list(self._micro_batches(mine))), float(mine[:, 1:].size)

    def _micro_batches(self, sequences: NDArray[np.int64]) -> Iterator[MicroBatch]:
        for start in range(0, len(sequences), self._micro_batch):
            tokens = sequences[start : start + self._micro_batch]
            yield MicroBatch(tokens[:, :-1], tokens[:, 1:], self._documents(tokens[:, :-1]))

    def _documents(self, inputs: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the document of each input, where they are kept apart; an end mark begins one."""
        return np.cumsum(inputs == self._end, axis=1) if self._documents_apart else None

    def _sequences(self) -> NDArray[np.int64]:
        """Return [sequences, tokens + 1]; shorter than in training where the text is short."""
        if self._tokens is None:
            stream = self._stream(self._most * self._seq_len + 1)
            length = min(self._seq_len, len(stream) - 1)
            count = (len(stream) - 1) // length if length > 0 else 0
            rows = [stream[n * length : (n + 1) * length + 1] for n in range(count)]
            self._tokens = np.array(rows, dtype=np.int64).reshape(count, max(0, length) + 1)
        return self._tokens

    def _stream(self, enough: int) -> list[int]:
        """Return so many tokens, each document with its end mark: about as many of each as can be.

        A long document alone would tell little of the others.
        """
        tokenizer = load_tokenizer(self._tokenizer)
        self._end = tokenizer.token_to_id(END_OF_TEXT)
        mark = [] if self._end is None else [self._end]
        most = DOCUMENTS_PER_SEQUENCE * self._most
        self.may_decide, found = _shown(self._held_out)
        texts = list(islice(found, most))
        if not texts:
            return []
        share = max(self._seq_len, -(-enough // len(texts)))
        while True:
            cut = [text[: share * CHARACTERS_PER_TOKEN] for text in texts]
            documents = [[*ids, *mark] for ids in encode_batch(tokenizer, cut)]
            stream = [token for document in documents for token in document[:share]]
            is_all = all(len(document) <= share for document in documents) and cut == texts
            if len(stream) >= enough or is_all:
                self.bytes_per_token = _bytes_per_token(tokenizer, documents, share)
                return stream[:enough]
            share *= 2


def _bytes_per_token(tokenizer: Tokenizer, documents: Sequence[Sequence[int]], share: int) -> float:
    """Return how many bytes of text a token stands for; the marks stand for none."""
    cut = [list(document[:share]) for document in documents]
    texts = tokenizer.decode_batch(cut, skip_special_tokens=True)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return size / max(1, sum(map(len, cut)))


def _shown(held_out: Sequence[Path]) -> tuple[bool, Iterator[str]]:
    """Return whether there is text of `dev`, and that text; else the gate's."""
    has_dev = any(sample.split == DEV for sample in read_all(held_out))
    part = DEV if has_dev else GATE
    return has_dev, (s.text for s in read_all(held_out) if held_out_part(s.split) == part)
