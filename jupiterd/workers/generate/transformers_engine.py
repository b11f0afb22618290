"""A model folder that writes with transformers, many prompts at once.

Owns the batch size and how often a text is looked at while it is written. Doesn't know what is
asked.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from jupiterd.cycle.templates.prompt import Prompt, Written
from jupiterd.workers.generate.engine import Request, Sampling, Told, nobody
from jupiterd.workers.generate.model_folder import open_model
from jupiterd.workers.generate.sampler import rows_written
from jupiterd.workers.memory_room import with_room_for_all

log = logging.getLogger(__name__)

CUDA = "cuda"
BATCH_CPU, BATCH_GPU = 32, 64
LOOK_EVERY_TOKENS = 8
"""A text is looked at so often for whether it has come to its end: to decode it costs time."""


class TransformersEngine:
    """Writes with PyTorch."""

    def __init__(self, folder: Path, device: str = CUDA) -> None:
        """Load the model; raises CorruptArtifactError where it can't be.

        device: such as `cuda:1`; the CPU in place of one that torch can't use
        """
        device = device if device.startswith(CUDA) and torch.cuda.is_available() else "cpu"
        self._model = open_model(folder, device)
        self._text = self._model.text
        self.batch = BATCH_CPU if device == "cpu" else BATCH_GPU
        self.specials: Sequence[str] = self._text.specials

    def size(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has."""
        return len(self._text.ids(prompt))

    def fits(self, prompt: Prompt, max_tokens: int) -> bool:
        """Say whether the model can hold a prompt and what is to be written."""
        return self._text.fits(self.size(prompt), max_tokens)

    def write(
        self, requests: Sequence[Request], sampling: Sampling, told: Told = nobody
    ) -> Iterator[tuple[int, Written]]:
        """Yield each answer as soon as it is whole; half as many at once where memory runs out.

        Raises:
            OutOfMemoryError: there is no room for a single one.
        """

        def attempt(numbers: Sequence[int]) -> Iterator[tuple[int, Written]]:
            return self._written(requests, numbers, sampling, told)

        yield from with_room_for_all(len(requests), self.batch, attempt, self._take_fewer, "prompt")

    def _take_fewer(self, at_a_time: int) -> None:
        log.warning("smaller_batch: memory ran out, %d prompts at once from now on", at_a_time)
        self.batch = at_a_time

    def _written(
        self, requests: Sequence[Request], numbers: Sequence[int], sampling: Sampling, told: Told
    ) -> Iterator[tuple[int, Written]]:
        chosen = [requests[number] for number in numbers]

        def is_done(at: int, row: Sequence[int]) -> bool:
            is_looked_at = len(row) % LOOK_EVERY_TOKENS == 0
            return is_looked_at and chosen[at].is_done(self._text.decode(row))

        prompts = [self._text.ids(request.prompt) for request in chosen]
        seeds = [request.seed for request in chosen]
        for row in rows_written(self._model, prompts, sampling, seeds, is_done, told):
            opened = self._text.is_opened(chosen[row.number].prompt)
            text = self._text.decode(row.tokens)
            yield numbers[row.number], Written(text, len(row.tokens), row.is_whole, opened)
