"""How long a rank computes in a step, on torch, before it waits for the others.

Owns that measuring. DistributedDataParallel shares gradients while the rest of them is computed, so
the moment when the last of a rank's own is there is seen by hooks alone.
"""

import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn


class ComputeClock:
    """Measures from the start of a step to the moment when its last gradient is computed."""

    def __init__(self, parameters: Iterable[nn.Parameter], device: str) -> None:
        self._is_cuda = torch.device(device).type == "cuda"
        self._first: Any = torch.cuda.Event(enable_timing=True) if self._is_cuda else None
        self._last: Any = torch.cuda.Event(enable_timing=True) if self._is_cuda else None
        self._began_s = self._ended_s = 0.0
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._note)

    def start(self) -> None:
        """Begin a step."""
        self._began_s = self._ended_s = time.perf_counter()
        if self._is_cuda:
            self._first.record()

    def computed_s(self) -> float:
        """Return how long was computed, once the step's gradients have been looked at."""
        if self._is_cuda:  # whoever looked at the gradients has waited for the device
            return float(self._first.elapsed_time(self._last)) / 1000
        return self._ended_s - self._began_s

    def _note(self, _parameter: torch.Tensor) -> None:
        if self._is_cuda:
            self._last.record()
        else:
            self._ended_s = time.perf_counter()
