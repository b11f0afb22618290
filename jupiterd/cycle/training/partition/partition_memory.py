"""How much memory a rank needs where a model is cut over ranks, and the cut that fits all of them.

Owns that arithmetic. Pure. Doesn't know devices: their memory is told, and `memory` counts what a
rank needs that holds everything. Beside an adapter the frozen model is cut, and nothing else.

What is cut is shared out in proportion to the memory that each rank has to spare beside what it
holds anyway: activations, the process, buffers, and what the stage leaves whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import CUDA, MLX, Fit, MemoryNeed, candidate_fits, cost_of
from jupiterd.cycle.training.partition.partition import GRADIENTS, WEIGHTS, Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE
from jupiterd.errors import TooLargeForDeviceError

FP32_BYTES: Final = 4

_UNITS_AT_A_TIME: Final = 2
"""One layer computes; meanwhile the next one's weights come, or the last one's gradients go."""

OUTER_VECTORS: Final = 8
"""As many numbers for each weight an island has in memory as an outer step is worked out: weights
and momentum of all, the next ones, where its round began and ended, what is packed, and what
packing has left."""

WHOLE: Final = 1000
"""Parts are counted in thousandths of the model."""


@dataclass(frozen=True)
class PartitionFit:
    """A plan and a cut that fit every rank."""

    fit: Fit
    """The plan, as it is computed; its need is that of the rank with the least to spare."""
    partition: Partition
    needs: tuple[MemoryNeed, ...]
    """Of each rank."""


def need_of_part(
    whole: MemoryNeed, shape: ModelShape, stage: int, share: float, ranks: int, engine: str = ""
) -> MemoryNeed:
    """Return what a rank needs that holds a share of what a stage cuts.

    MLX receives when activations aren't there, and the gradient outside of layers takes the place
    that the logits had.

    whole: what it would need if it held everything; share: from 0 to 1
    """
    if whole.frozen:
        return _need_beside_adapter(whole, shape, share)
    layer, outside = unit_sizes(shape)
    parameters, on_mlx = parameter_count(shape), engine == MLX
    computing = layer + outside if on_mlx else _UNITS_AT_A_TIME * layer + outside
    received = 0 if on_mlx else round((layer + max(layer, outside)) * share * (ranks - 1))
    copied = 2 * FP32_BYTES * max(layer, outside) if on_mlx else _copied(whole, layer, outside)
    need = replace(
        whole,
        optimizer=round(whole.optimizer * share) + FP32_BYTES * received,
        copies=min(whole.copies, copied),
        outer=round(whole.outer * share),
        snapshots=0,
    )
    if stage >= GRADIENTS:
        made = layer if on_mlx else computing
        need = replace(need, gradients=round(whole.gradients * share) + FP32_BYTES * made)
    if stage >= WEIGHTS:
        of_one = whole.weights / parameters
        held = round(FP32_BYTES * parameters * share)
        need = replace(need, weights=held + round(of_one * computing))
    return need


def with_outer_state(need: MemoryNeed, shape: ModelShape, device: DeviceAbilities) -> MemoryNeed:
    """Return what a rank of an island needs, beside what is as in a gang of its own.

    Where the device has a memory of its own, it takes none of that.
    """
    if device.kind == CUDA:
        return need
    return replace(need, outer=OUTER_VECTORS * FP32_BYTES * parameter_count(shape))


def _need_beside_adapter(whole: MemoryNeed, shape: ModelShape, share: float) -> MemoryNeed:
    """Return what a rank needs that holds a share of a frozen model, and all of an adapter."""
    layer, outside = unit_sizes(shape)
    of_one = whole.frozen / parameter_count(shape)
    held = whole.frozen * share + of_one * (_UNITS_AT_A_TIME * layer + outside)
    return replace(whole, weights=whole.weights - whole.frozen + round(held), snapshots=0)


def _copied(whole: MemoryNeed, layer: int, outside: int) -> int:
    """Return what torch gathers for a checkpoint at a time: when nothing is computed any more.

    Both moments of a layer and of what is outside of layers, and a copy of the largest tensor.
    """
    gathered = FP32_BYTES * (2 * (layer + outside) + max(layer, outside))
    return max(0, gathered - whole.activations - whole.logits)


def unit_sizes(shape: ModelShape) -> tuple[int, int]:
    """Return how many numbers a layer has, and what is outside of layers."""
    one, two = (parameter_count(shape.model_copy(update={"layers": n})) for n in (1, 2))
    layer = two - one
    return layer, parameter_count(shape) - shape.layers * layer


def spare_share(
    whole: MemoryNeed, shape: ModelShape, stage: int, ranks: int, device: DeviceAbilities
) -> float:
    """Return the largest share that a device has room for; below 0: not even for none of it.

    What a rank needs grows evenly with its share, so two points say all.
    """
    none, everything = (
        need_of_part(whole, shape, stage, at, ranks, device.engine) for at in (0.0, 1.0)
    )
    rooms = _rooms(device)
    if not rooms:
        return 1.0
    return min(
        (room - getattr(none, part)) / (getattr(everything, part) - getattr(none, part))
        for part, room in rooms
    )


def _rooms(device: DeviceAbilities) -> list[tuple[str, float]]:
    """Return what of a need has how much room; nothing where nobody knows the device's memory."""
    usable = 1 - RESERVED_SHARE
    limit = "on_device" if device.ram_bytes else "total"
    found = [(limit, usable * device.memory_bytes)] if device.memory_bytes else []
    return found + ([("total", usable * device.ram_bytes)] if device.ram_bytes else [])


def partition_that_fits(
    shape: ModelShape,
    plan: TrainPlan,
    devices: Sequence[DeviceAbilities],
    stages: Sequence[int],
    *,
    is_island: bool = False,
) -> PartitionFit:
    """Return the lowest of these stages that fits, with the quickest plan.

    devices: of each rank, in their order
    is_island: they keep what an outer step needs, each of its part

    Raises:
        TooLargeForDeviceError: none fits; the message says how much there is too little of.
        UsageError: something was asked for that a device can't do.
    """
    choices = list[list[Fit]]()
    for stage in stages:
        choices = [_wholes(shape, plan, device, stage, is_island=is_island) for device in devices]
        found = [_cut(shape, stage, devices, fits) for fits in zip(*choices, strict=True)]
        if fitting := [each for each in found if each is not None]:
            return min(fitting, key=lambda each: cost_of(shape, each.fit))
    raise _refusal(shape, max(stages), devices, [fits[-1].need for fits in choices])


def missing_bytes(
    shape: ModelShape,
    plan: TrainPlan,
    devices: Sequence[DeviceAbilities],
    *,
    is_island: bool = False,
) -> int:
    """Return about how much memory more would hold a model in its highest stage; 0: none.

    devices: those that there are, of each rank
    """
    choices = [_wholes(shape, plan, device, WEIGHTS, is_island=is_island) for device in devices]
    found = [_missing(shape, devices, fits) for fits in zip(*choices, strict=True)]
    return round(max(0.0, min(found)) / (1 - RESERVED_SHARE))


def _missing(shape: ModelShape, devices: Sequence[DeviceAbilities], fits: Sequence[Fit]) -> float:
    """Return how many bytes of what is cut nobody has room for, with one plan."""
    ranks = len(devices)
    spare = [
        spare_share(fit.need, shape, WEIGHTS, ranks, device)
        for fit, device in zip(fits, devices, strict=True)
    ]
    none, all_of_it = (need_of_part(fits[0].need, shape, WEIGHTS, n, ranks).total for n in (0, 1))
    return (1 - sum(max(0.0, share) for share in spare)) * (all_of_it - none)


def _wholes(
    shape: ModelShape, plan: TrainPlan, device: DeviceAbilities, stage: int, *, is_island: bool
) -> list[Fit]:
    """Return what a device would need for everything, with each micro batch and checkpointing.

    Optimizer states alone that can be cut anywhere are cut: AdamW's of weights in fp32. Where
    gradients are cut, MLX computes every layer twice, whatever is asked for.
    """
    options = plan.options.model_copy(update=_CUT_OPTIONS)
    found = _candidates(shape, plan.model_copy(update={"options": options}), device, stage)
    if not is_island:
        return found
    return [replace(fit, need=with_outer_state(fit.need, shape, device)) for fit in found]


def _candidates(
    shape: ModelShape, plan: TrainPlan, device: DeviceAbilities, stage: int
) -> list[Fit]:
    """Return the plan with each micro batch and checkpointing, as a device computes it cut."""
    if device.engine != MLX or stage < GRADIENTS:
        return candidate_fits(shape, plan, device)
    options = plan.options
    twice = options.model_copy(update={"gradient_checkpointing": "on"})
    fits = candidate_fits(shape, plan.model_copy(update={"options": twice}), device)
    return [replace(fit, plan=fit.plan.model_copy(update={"options": options})) for fit in fits]


def _cut(
    shape: ModelShape, stage: int, devices: Sequence[DeviceAbilities], fits: Sequence[Fit]
) -> PartitionFit | None:
    """Return the cut of a stage with one plan, in proportion to what there is to spare."""
    ranks = len(devices)
    spare = [
        spare_share(fit.need, shape, stage, ranks, device)
        for fit, device in zip(fits, devices, strict=True)
    ]
    if min(spare) < 0 or sum(spare) < 1:
        return None
    partition = Partition(stage, tuple(round(WHOLE * share / sum(spare)) for share in spare))
    needs = tuple(
        need_of_part(fit.need, shape, stage, partition.share(rank), ranks, devices[rank].engine)
        for rank, fit in enumerate(fits)
    )
    if not all(need.fits(device) for need, device in zip(needs, devices, strict=True)):
        return None  # by a rounded part
    return PartitionFit(replace(fits[0], need=max(needs, key=_total)), partition, needs)


def _refusal(
    shape: ModelShape, stage: int, devices: Sequence[DeviceAbilities], wholes: Sequence[MemoryNeed]
) -> TooLargeForDeviceError:
    """Return the refusal: what all devices together have room for, and what would be needed."""
    ranks = len(devices)
    shares = [
        spare_share(whole, shape, stage, ranks, device)
        for whole, device in zip(wholes, devices, strict=True)
    ]
    room = sum(device.memory_bytes for device in devices) / 1e9
    if min(shares) < 0:
        rank = shares.index(min(shares))
        engine = devices[rank].engine
        least = need_of_part(wholes[rank], shape, stage, 0.0, ranks, engine).total / 1e9
        has = devices[rank].memory_bytes / 1e9
        message = (
            f"{shape.size} needs {least:.1f} GB on each machine even where it is cut over all of "
            f"them, and one has {has:.1f} GB, of which {RESERVED_SHARE * has:.1f} GB are kept in "
            "reserve"
        )
        return TooLargeForDeviceError(message, "leave that machine out, or shorten --seq-len")
    message = (
        f"{shape.size} doesn't fit {ranks} machines with {room:.1f} GB together: there is room for "
        f"{100 * sum(shares):.0f} % of it"
    )
    return TooLargeForDeviceError(message, "add a machine, or choose a smaller size")


def _total(need: MemoryNeed) -> int:
    return need.total


_CUT_OPTIONS: Final = {"optimizer": "adamw", "weights": "fp32"}
