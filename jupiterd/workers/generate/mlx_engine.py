"""A model folder that writes with mlx-lm, many prompts at once.

Owns the call of `BatchGenerator`. Doesn't know what is asked, how a folder is loaded, or what
happens where memory runs out (`folder_engine`).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
from blake3 import blake3

from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.workers.generate.engine import OnTokens, Request, Sampling
from jupiterd.workers.generate.folder_engine import FolderEngine
from jupiterd.workers.generate.model_text import ModelText
from jupiterd.workers.mlx_folder import loaded_model

BATCH = 64
MAX_CHOICES = 256
"""The likeliest tokens, which alone are drawn from."""


class MlxWritingEngine(FolderEngine):
    """Writes with MLX, which draws for all rows from one source: all of their seeds decide."""

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises:
            UnknownModelError: mlx-lm doesn't know its architecture.
            CorruptArtifactError: the folder is incomplete or can't be read.
        """
        super().__init__(ModelText(folder), BATCH)
        self._model = loaded_model(folder)

    def _written(
        self, chosen: Sequence[Request], sampling: Sampling, on_tokens: OnTokens
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        prompts = [self._text.ids(request.prompt) for request in chosen]
        most = self._text.max_tokens
        room = [max(1, min(sampling.max_tokens, most - len(ids))) for ids in prompts]
        mx.random.seed(_seed_of(chosen))
        writer = self._writer(sampling)
        places = {uid: at for at, uid in enumerate(writer.insert(prompts, room))}
        rows: dict[int, list[int]] = {uid: [] for uid in places}
        try:
            while responses := writer.next_generated():
                on_tokens(len(responses))
                for each in responses:
                    if each.finish_reason != "stop":
                        rows[each.uid].append(each.token)
                    at, row = places[each.uid], rows[each.uid]
                    is_done = each.finish_reason is None and self._is_done(chosen[at], row)
                    if is_done:
                        writer.remove([each.uid])
                    if is_done or each.finish_reason is not None:
                        is_whole = is_done or len(row) < room[at]
                        yield at, self._answer(chosen[at], row, is_whole=is_whole)
        finally:
            writer.close()

    def _writer(self, sampling: Sampling) -> Any:  # noqa: ANN401 - mlx-lm's
        from mlx_lm.generate import BatchGenerator

        return BatchGenerator(
            self._model,
            stop_tokens=[[token] for token in sorted(self._text.ends)],
            sampler=_sampler(sampling),
            completion_batch_size=self.batch,
            prefill_batch_size=self.batch,
        )


def _sampler(sampling: Sampling) -> Callable[[mx.array], mx.array]:
    """Return what draws a token for each row, as `sampler` does with torch.

    mlx-lm's own sorts the whole vocabulary, which takes a CPU longer than a small model.
    """

    def drawn(log_chances: mx.array) -> mx.array:
        """Return int32[rows]; log_chances: float[rows, vocabulary]."""
        if sampling.temperature <= 0:
            return mx.argmax(log_chances, axis=-1)
        likeliest = min(MAX_CHOICES, log_chances.shape[-1])
        found = mx.argpartition(-log_chances, likeliest - 1, axis=-1)[:, :likeliest]
        heated = mx.take_along_axis(log_chances, found, -1) / sampling.temperature
        order = mx.argsort(-heated, axis=-1)
        heated, found = (mx.take_along_axis(each, order, -1) for each in (heated, found))
        total = mx.logsumexp(log_chances / sampling.temperature, axis=-1, keepdims=True)
        chances = mx.exp(heated - total)
        before = mx.cumsum(chances, axis=-1) - chances
        chosen = mx.random.categorical(mx.where(before < sampling.top_p, heated, -mx.inf))
        return mx.take_along_axis(found, chosen[:, None], -1)[:, 0]

    return drawn


def _seed_of(requests: Sequence[Request]) -> int:
    seeds = " ".join(str(request.seed) for request in requests)
    return int.from_bytes(blake3(seeds.encode()).digest(4), "big")
