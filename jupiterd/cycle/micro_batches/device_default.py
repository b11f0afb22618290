"""How many sequences a rank holds at a time before anybody has tried: by memory and device class.

Pure. Owns that default and the most that may be tried. Doesn't know how speeds are measured
(`batch_search`), or what checkpointing costs (`training.memory`, which decides about it first).

A GPU wastes about a constant time on each micro batch: the launches of its kernels and what the
host does in between. That was about 5 ms of 25m on an H200, so a micro batch should compute for
twenty times as long, where memory allows. A CPU wastes little, and has little cache: one to two
thousand tokens at a time are as good as any number (`docs/benchmarks.md` has both).
"""

from collections.abc import Callable
from typing import Final

from jupiterd.cycle.micro_batches.even_sizes import doubling_sizes, largest_size
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.engine_options import DeviceAbilities, Precision
from jupiterd.cycle.training.memory import (
    CPU,
    CUDA,
    MLX,
    flops_per_token,
    memory_need,
    options_on,
)
from jupiterd.cycle.training.peak_flops import APPLE_FLOPS_PER_S, USED_OF_PEAK
from jupiterd.cycle.training.plan import ModelShape, TrainPlan

FILLING_S: Final = 0.1
"""A micro batch that computes for so long wastes little of a GPU's time."""

CPU_TOKENS: Final = (1024, 2048)
"""Of a micro batch on a CPU: no fewer, and no more."""

METAL_MOST_S: Final = 2.0
"""macOS ends a program whose command holds the GPU for longer while it draws the screen (mlx issue
3267, "Impacting Interactivity")."""

UNKNOWN_FLOPS_PER_S: Final = 1e13
"""Of a GPU that nobody knows, as it trains."""


def guessed_flops_per_s(device: DeviceAbilities, peak_flops_per_s: float) -> float:
    """Return how many operations of a training a GPU does in a second.

    peak_flops_per_s: as its data sheet says; 0: nobody knows
    """
    if device.engine == MLX:
        return APPLE_FLOPS_PER_S
    return USED_OF_PEAK * peak_flops_per_s or UNKNOWN_FLOPS_PER_S


def default_micro_batch(
    shape: ModelShape, plan: TrainPlan, device: DeviceAbilities, flops_per_s: float
) -> int:
    """Return the sequences that one rank holds at a time.

    On a GPU never fewer than the plan has, but for macOS's sake; a plan that doesn't fit is
    another's business. More only where they fit without more checkpointing than the plan's own.

    flops_per_s: what the device makes of a training; 0: nobody knows
    """
    if plan.options.micro_batch == "fixed":
        return plan.micro_batch_sequences
    if device.kind == CPU:
        return _on_cpu(shape, plan, device)
    planned = min(plan.micro_batch_sequences, plan.batch_sequences)
    each_s = sequence_s(shape, flops_per_s, plan.options.adapter)
    most = most_micro_batch(shape, plan, device, flops_per_s)
    filling = [n for n in doubling_sizes(plan.batch_sequences) if n * each_s >= FILLING_S]
    wanted = filling[0] if filling else plan.batch_sequences
    return min(most, max(planned, wanted))


def most_micro_batch(
    shape: ModelShape, plan: TrainPlan, device: DeviceAbilities, flops_per_s: float
) -> int:
    """Return the most sequences that may be tried; at least what is planned, where macOS lets it.

    One rank may get all of a step in the end: its share follows its speed.
    """
    planned, batch = min(plan.micro_batch_sequences, plan.batch_sequences), plan.batch_sequences
    most = max(planned, largest_size(batch, _fits(shape, plan, device)))
    if device.engine != MLX or device.kind in (CPU, CUDA):
        return most
    return max(
        1, min(most, int(METAL_MOST_S / sequence_s(shape, flops_per_s, plan.options.adapter)))
    )


def sequence_s(
    shape: ModelShape, flops_per_s: float, adapter: AdapterOptions | None = None
) -> float:
    """Return about how long a device computes on one sequence, forward and backward."""
    work = flops_per_token(shape, adapter) * shape.seq_len
    return work / (flops_per_s or UNKNOWN_FLOPS_PER_S)


def _on_cpu(shape: ModelShape, plan: TrainPlan, device: DeviceAbilities) -> int:
    """Return what the plan has, with fewer tokens where these are many, and more where few."""
    planned, few, many = plan.micro_batch_sequences, *CPU_TOKENS
    least, most = -(-few // shape.seq_len), max(1, many // shape.seq_len)
    if planned > most:
        return most
    if planned >= min(least, plan.batch_sequences):
        return planned
    fitting = largest_size(plan.batch_sequences, _fits(shape, plan, device))
    return max(planned, min(least, fitting))


def _fits(shape: ModelShape, plan: TrainPlan, device: DeviceAbilities) -> Callable[[int], bool]:
    options = options_on(device, shape, plan)
    precision: Precision = options.precision

    def fits(size: int) -> bool:
        need = memory_need(
            shape,
            plan.model_copy(update={"micro_batch_sequences": size}),
            precision,
            gradient_checkpointing=options.gradient_checkpointing,
            device=device,
        )
        return need.fits(device)

    return fits
