"""What the card's matrix product reaches in bf16: beside it all other figures are read."""

from collections.abc import Iterator

import torch

from tests.bench.gpu.gpu_clock import seconds_of
from tests.bench.gpu.row import Row

SIZE, TIMES = 8192, 50


def rows() -> Iterator[Row]:
    """Yield TFLOP/s of a square product."""
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    step_s = seconds_of(lambda: torch.mm(a, b), TIMES)
    yield Row(f"bf16 product of {SIZE} x {SIZE}", 2 * SIZE**3 / step_s / 1e12, "TFLOP/s")
