"""What scoring text is, whatever computes it: windows, batches, sums, and the first token.

Owns everything but the model's own arithmetic, which an engine's class adds (`language_model` in
torch, `mlx_language_model` in MLX). So both score the same tokens in the same windows, and a text's
bits per byte differ only in how 32-bit floats are rounded.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.evaluate.windows import BatchSize, Window, batches_of, windows_of
from jupiterd.workers.tokens.marks import document_marks
from jupiterd.workers.tokens.tokenizer import encode_batch, load_tokenizer

PLAIN_HEADS = frozenset({"qwen3", "llama", "mistral"})
"""Architectures whose logits are the output embedding of the last hidden state and nothing more."""

MAX_CONTEXT = 4096
"""Longer windows cost memory and hardly change a score."""

USUAL_WINDOWS = 8
"""With fewer of them at a time there are fewer tokens, too."""

MOST_BATCH_TOKENS = 2 * MAX_CONTEXT
"""Of the windows that pass through the model together: eight of the longest would take minutes of a
model of 135 million parameters on a CPU before anything is told of them, and gigabytes of others.
"""

Tokens = NDArray[np.int64]


def share_of(usual: int, batch_windows: int) -> int:
    """Return as much of what is usual as these windows are of the usual ones, and at least 1."""
    return max(1, usual * min(batch_windows, USUAL_WINDOWS) // USUAL_WINDOWS)


FIRST_BATCHES = 2
"""Batches of the shortest windows that are scored before the longest."""


def _short_ones_first(batches: list[list[Window]]) -> list[list[Window]]:
    """Return batches, so that something is told soon: a long window takes a minute on a CPU."""
    return [*batches[-FIRST_BATCHES:], *batches[:-FIRST_BATCHES]]


class Stream(NamedTuple):
    """Tokens of a document, and which of them are scored; the first is only read."""

    ids: Sequence[int]
    counted: Sequence[bool] | None = None
    """None: all but the first."""


class TextScorer(ABC):
    """A model and its tokenizer, ready to score."""

    def __init__(self, folder: Path, vocab_size: int, positions: int) -> None:
        """Take what config.json says.

        Raises:
            CorruptArtifactError: there is no tokenizer.
            InvalidSettingError: nobody names an end mark.
        """
        self.tokenizer = load_tokenizer(folder)
        self.vocab_size = vocab_size
        self._context = min(positions, MAX_CONTEXT)
        marks = document_marks(folder, self.tokenizer)
        self._first, self._end = marks.first, marks.end

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, with no special token."""
        return encode_batch(self.tokenizer, list(texts))

    def is_lossless(self, text: str, ids: list[int]) -> bool:
        """Say whether the ids spell the text; one that loses text would be scored too well."""
        return self.tokenizer.decode(ids, skip_special_tokens=False) == text

    def nats(
        self,
        documents: Sequence[list[int]],
        batch_windows: int,
        on_progress: Callable[[int], None],
    ) -> list[float]:
        """Return -log probability of each document's tokens, the first one after a mark.

        Args:
            documents: token ids.
            batch_windows: windows that pass through the model together; less than `USUAL_WINDOWS`
                is for where memory ran out.
            on_progress: told how many documents' worth of tokens are scored.
        """
        return self.stream_nats(self.streams(documents), batch_windows, on_progress)

    def streams(self, documents: Sequence[list[int]]) -> list[Stream]:
        """Return documents of text as they are scored: behind the end mark."""
        return [Stream([self._first, *ids]) for ids in documents]

    def counted_bytes(self, stream: Stream) -> int:
        """Return how many bytes of text are scored; marks are of none."""
        pairs = zip(stream.ids, stream.counted or [True] * len(stream.ids), strict=True)
        ids = [id_ for id_, is_counted in pairs if is_counted]
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        return len(text.encode("utf-8", "replace"))

    def stream_nats(
        self,
        streams: Sequence[Stream],
        batch_windows: int,
        on_progress: Callable[[int], None],
    ) -> list[float]:
        """Return -log probability of each stream's tokens that count, as `nats` does."""
        windows = [
            window
            for number, stream in enumerate(streams)
            for window in windows_of(number, len(stream.ids) - 1, self._context)
        ]
        nats: dict[Window, float] = {}
        tokens, all_tokens = 0, sum(window.stop - window.start for window in windows)
        batches = _short_ones_first(list(batches_of(windows, self.batch_size(batch_windows))))
        results = self.results(
            batches, lambda batch: self._window_nats(batch, streams), batch_windows
        )
        for batch, found in zip(batches, results, strict=True):
            nats |= zip(batch, found, strict=True)
            tokens += sum(window.stop - window.start for window in batch)
            on_progress(tokens * len(streams) // all_tokens)
        # Added up in the documents' order, however windows were put together.
        totals = [0.0] * len(streams)
        for window in windows:
            totals[window.document] += nats[window]
        return totals

    def batch_size(self, batch_windows: int) -> BatchSize:
        """Return how much passes through the model together, where so many windows are wanted."""
        return BatchSize(batch_windows, share_of(MOST_BATCH_TOKENS, batch_windows))

    def results(
        self,
        batches: Sequence[list[Window]],
        score: Callable[[list[Window]], list[float]],
        batch_windows: int,  # noqa: ARG002 - for those that compute several at a time
    ) -> Iterator[list[float]]:
        """Yield what `score` returns of each batch, in their order."""
        return map(score, batches)

    def write_on(
        self,
        prompts: Sequence[str],
        new_tokens: int,
        temperature: float,
        seed: int,
        on_written: Callable[[int], None] = lambda _: None,
    ) -> list[str]:
        """Return what the model writes after each prompt, up to its end mark; a seed decides it.

        on_written: told how many are written so far.
        """
        budget = min(new_tokens, self._context // 2)
        written: list[str] = []
        for number, ids in enumerate(self.encode(prompts)):
            fed = [self._first, *ids][-(self._context - budget) :]
            new = self.continued(fed, budget, temperature, seed + number)
            before_end = new[: new.index(self._end)] if self._end in new else new
            written.append(self.tokenizer.decode(before_end, skip_special_tokens=False))
            on_written(len(written))
        return written

    @abstractmethod
    def row_nats(self, inputs: Tokens, targets: Tokens) -> list[float]:
        """Return the nats of each row; both are [rows, length], a target of -1 is unscored.

        A row is padded at its end, where a causal model doesn't see it. What isn't finite is inf.
        """

    @abstractmethod
    def continued(self, fed: list[int], budget: int, temperature: float, seed: int) -> list[int]:
        """Return at most `budget` tokens drawn one after the other behind those that are fed."""

    def _window_nats(self, batch: Sequence[Window], streams: Sequence[Stream]) -> list[float]:
        longest = max(window.stop - window.start for window in batch)
        inputs = np.zeros((len(batch), longest), dtype=np.int64)
        targets = np.full((len(batch), longest), -1, dtype=np.int64)
        for row, window in enumerate(batch):
            stream, part = streams[window.document], slice(window.start, window.stop + 1)
            fed = np.array(stream.ids[part])
            inputs[row, : len(fed) - 1] = fed[:-1]
            first = window.score_from - window.start
            wanted = fed if stream.counted is None else np.where(stream.counted[part], fed, -1)
            targets[row, first : len(fed) - 1] = wanted[first + 1 :]
        return [
            value if math.isfinite(value) else math.inf for value in self.row_nats(inputs, targets)
        ]
