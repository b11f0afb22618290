"""A model folder that writes with transformers, many prompts at once.

Owns the batch size and how often a text is looked at while it is written. Doesn't know what is
asked.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from jupiterd.cycle.templates.prompt import Prompt, Written
from jupiterd.workers.generate.engine import Request, Sampling
from jupiterd.workers.generate.model_folder import open_model
from jupiterd.workers.generate.sampler import write_on

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
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[tuple[int, Written]]:
        """Yield the answers, all at once when the last is done."""

        def is_done(number: int, row: Sequence[int]) -> bool:
            return (
                len(row) % LOOK_EVERY_TOKENS == 0
                and self._text.is_opened(requests[number].prompt)
                and requests[number].is_done(self._text.decode(row))
            )

        prompts = [self._text.ids(request.prompt) for request in requests]
        seeds = [request.seed for request in requests]
        rows = write_on(self._model, prompts, sampling, seeds, is_done)
        for number, (row, is_whole) in enumerate(rows):
            opened = self._text.is_opened(requests[number].prompt)
            yield number, Written(self._text.decode(row), len(row), is_whole, opened)
