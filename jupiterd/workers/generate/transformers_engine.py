"""A model folder that writes with transformers, many prompts at once.

Owns how many a device begins with. Doesn't know what is asked, or what happens where memory runs
out (`folder_engine`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.workers.generate.engine import OnTokens, Request, Sampling
from jupiterd.workers.generate.folder_engine import FolderEngine
from jupiterd.workers.generate.model_folder import open_model
from jupiterd.workers.generate.sampler import rows_written

CUDA = "cuda"
BATCH_CPU, BATCH_GPU = 32, 64


class TransformersEngine(FolderEngine):
    """Writes with PyTorch."""

    def __init__(self, folder: Path, device: str = CUDA) -> None:
        """Load the model; raises CorruptArtifactError where it can't be.

        device: such as `cuda:1`; the CPU in place of one that torch can't use
        """
        device = device if device.startswith(CUDA) and torch.cuda.is_available() else "cpu"
        self._model = open_model(folder, device)
        super().__init__(self._model.text, BATCH_CPU if device == "cpu" else BATCH_GPU)

    def _written(
        self, chosen: Sequence[Request], sampling: Sampling, on_tokens: OnTokens
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        def is_done(at: int, row: Sequence[int]) -> bool:
            return self._is_done(chosen[at], row)

        prompts = [self._text.ids(request.prompt) for request in chosen]
        seeds = [request.seed for request in chosen]
        for row in rows_written(self._model, prompts, sampling, seeds, is_done, on_tokens):
            answer = self._answer(chosen[row.number], row.tokens, is_whole=row.is_whole)
            yield row.number, answer
