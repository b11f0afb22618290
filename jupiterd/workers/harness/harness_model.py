"""A model as lm-evaluation-harness asks it: the harness's own class for transformers, which counts.

Owns telling how many requests are answered. The arithmetic is the harness's, so that figures are
those that others publish; 32-bit floats, as of every score here.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lm_eval.models.huggingface import HFLM  # pyright: ignore[reportMissingImports]

from jupiterd.adapter_folder import base_beside
from jupiterd.errors import BrokenModelError
from jupiterd.workers.adapters.torch_merge import merge

GPU_BATCH = 16
"""Requests at a time. A CPU takes them one by one, as the harness does by itself."""


class CountingHook:
    """Where the harness hands over each answer, to keep it; here it is counted."""

    def __init__(self, told: Callable[[int], None]) -> None:
        self._told = told
        self._answered = 0

    def add_partial(self, _kind: str, _request: object, _answer: object) -> None:
        """Count an answer."""
        self._answered += 1
        self._told(self._answered)


class HarnessModel(HFLM):  # pyright: ignore[reportUntypedBaseClass]
    """A model in a folder, ready to be asked."""

    def loglikelihood_rolling(
        self,
        requests: Sequence[Any],
        disable_tqdm: bool = False,  # noqa: FBT001, FBT002 - its form
    ) -> list[float]:
        """Return the log-likelihood of whole texts, a few at a time: all at once tell nothing."""
        most = int(self.batch_size)
        parts = [requests[at : at + most] for at in range(0, len(requests), most)]
        return [
            value
            for part in parts
            for value in super(HarnessModel, self).loglikelihood_rolling(part, disable_tqdm)
        ]


def opened_model(folder: Path, device: str, told: Callable[[int], None]) -> HarnessModel:
    """Load a model.

    Raises:
        BrokenModelError: the folder holds none that can be loaded.
    """
    batch = GPU_BATCH if device.startswith("cuda") else 1
    base = base_beside(folder)
    try:
        model = HarnessModel(
            pretrained=str(base or folder), dtype="float32", device=device, batch_size=batch
        )
    except (OSError, ValueError, KeyError) as error:
        raise BrokenModelError(f"no model can be loaded from {folder.name}: {error}") from error
    if base is not None:
        merge(model.model, folder)
    model.set_cache_hook(CountingHook(told))
    return model
