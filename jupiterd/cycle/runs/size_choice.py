"""Which size suits a body of text and the machines that train on it.

Owns that choice and its words. Doesn't know where the presets lie or how machines are measured.

A model is as large as its text can feed: all the tokens that its recipe asks for are there within
four passes (see `step_budget`). Among these sizes the largest that the machines hold, and train
once within a day.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupiterd.cycle.training.architectures import QWEN3, parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import flops_per_token, plan_that_fits
from jupiterd.cycle.training.plan import ModelShape, derive
from jupiterd.cycle.training.step_budget import GOOD_PASSES
from jupiterd.errors import Bug, TooLargeForDeviceError
from jupiterd.formats import duration

MOST_S = 86_400.0
"""A first round that takes longer is nothing to begin with unasked."""


@dataclass(frozen=True)
class TrainingPower:
    """What the machines that would train can do."""

    smallest: DeviceAbilities | None = None
    """The device with the least memory; None where nobody knows."""
    flops_per_s: float = 0.0
    """Of all together, as they train; 0 where nobody knows."""


@dataclass(frozen=True)
class SizeChoice:
    """A size, and why not a larger one."""

    size: str
    reason: str


def proposed_size(
    tokens: int, presets: Sequence[ModelShape], power: TrainingPower = TrainingPower()
) -> SizeChoice:
    """Return the size for so many tokens of text; the smallest where none is fed.

    Raises:
        Bug: there is no preset.
    """
    sizes = _sizes(presets)
    if not sizes:
        raise Bug("there are no sizes to choose from")
    chosen, reason = sizes[0], f"the largest there is for {_millions(tokens)} tokens"
    for shape in sizes:
        if (lack := next(_lacks(tokens, shape, power), "")) and shape is not sizes[0]:
            reason = lack
            break
        chosen = shape
    return SizeChoice(chosen.size, reason)


def _sizes(presets: Sequence[ModelShape]) -> list[ModelShape]:
    """Return our own sizes from the smallest; of two as large, the one with the smaller batch."""
    ours = [shape for shape in presets if shape.architecture == QWEN3]
    found: dict[int, ModelShape] = {}
    for shape in sorted(ours, key=lambda shape: (shape.recipe.batch_sequences, len(shape.size))):
        found.setdefault(parameter_count(shape), shape)
    return [found[parameters] for parameters in sorted(found)]


def _lacks(tokens: int, shape: ModelShape, power: TrainingPower) -> Iterator[str]:
    """Yield what there is too little of for a size."""
    wanted = wanted_tokens(shape)
    if tokens * GOOD_PASSES < wanted:
        least = _millions(-(-wanted // GOOD_PASSES))
        yield f"{_millions(tokens)} tokens of text; {shape.size} needs {least}"
    device = power.smallest
    if device is not None and not _fits(shape, device):
        yield f"{shape.size} doesn't fit the smallest device's {device.memory_bytes / 1e9:.1f} GB"
    if power.flops_per_s:
        took_s = wanted * flops_per_token(shape) / power.flops_per_s
        if took_s > MOST_S:
            yield f"{shape.size} would take {duration(took_s)} for its first round here"


def wanted_tokens(shape: ModelShape) -> int:
    """Return the tokens of a size's first round, as its recipe has it."""
    recipe = shape.recipe
    return recipe.first_steps * recipe.batch_sequences * shape.seq_len


def _fits(shape: ModelShape, device: DeviceAbilities) -> bool:
    try:
        plan_that_fits(shape, derive(shape, 1), device)
    except TooLargeForDeviceError:
        return False
    return True


def _millions(tokens: int) -> str:
    return f"{tokens:,}" if tokens < 1_000_000 else f"{tokens / 1e6:,.1f} million"
