"""What torch scores on, and how many tokens at a time fill it.

Owns the choice of the device, its full precision, and the estimate of a batch's memory. Doesn't
know texts.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

CPU, CUDA = "cpu", "cuda"

CPU_BATCH_TOKENS = 1024
"""A thread has them in its core's cache; with more it is no faster."""

GPU_BATCH_TOKENS = 65_536
"""More don't fill any GPU better."""

_STATES, _GATES = 16, 4
"""So many vectors of a token's width, and of its inner width, exist at once at most."""


def usable_device(device: str) -> torch.device:
    """Return the device; the CPU in place of one that torch can't use."""
    is_usable = device.startswith(CUDA) and torch.cuda.is_available()
    return torch.device(device if is_usable else CPU)


def placed(model: Any, device: torch.device) -> torch.device:  # noqa: ANN401 - see `language_model`
    """Move a model to its device; return where it is: without room it stays on the CPU."""
    try:
        model.to(device)
    except torch.OutOfMemoryError:
        model.to(CPU)
        torch.cuda.empty_cache()
        return torch.device(CPU)
    return device


def free_bytes(device: torch.device) -> int:
    """Return how much of a GPU's memory is free, with what torch keeps for later."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def token_bytes(width: int, inner_width: int, logits: int) -> int:
    """Return how much a token takes while it passes through a model, in 32-bit floats.

    logits: how many of a token exist as long as its batch
    """
    return 4 * (_STATES * width + _GATES * inner_width + 3 * logits)


def gpu_batch_tokens(room_bytes: int, of_token_bytes: int) -> int:
    """Return how many tokens fill a GPU and take at most half of what is free."""
    return max(1, min(GPU_BATCH_TOKENS, room_bytes // 2 // of_token_bytes))


@contextmanager
def full_precision() -> Generator[None]:
    """Multiply in whole 32-bit floats (on GPUs without TF32) as long as the context is open."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
