"""Whether a model is cut over the ranks of a gang, or each of them holds it whole.

Owns that choice. Pure. Doesn't know how memory is counted (`memory`, `partition_memory`), or who
the ranks are.

1. Every rank holds the model where it fits the smallest device as it was asked for.
2. Where it doesn't, it is cut at the lowest stage that fits all of them.
3. Where no stage does, every rank holds it with Muon, or with weights in bf16.

Whoever names a stage has that one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jupiterd.cycle.training.adapters.given_quantized import given_bits
from jupiterd.cycle.training.engine_options import DeviceAbilities, EngineOptions, resolve
from jupiterd.cycle.training.memory import Fit, MemoryNeed, changes_of, plan_that_fits
from jupiterd.cycle.training.partition.partition import STAGES, WEIGHTS, Partition
from jupiterd.cycle.training.partition.partition_memory import partition_that_fits, with_outer_state
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import TooLargeForDeviceError, UsageError

AUTO: Final = "auto"
OFF: Final = "off"

_STAGES: Final[Mapping[str, Sequence[int]]] = {str(stage): (stage,) for stage in STAGES}


@dataclass(frozen=True)
class PartitionChoice:
    """A plan that fits all ranks, and what of the model each of them holds."""

    fit: Fit
    """The plan; its need is that of the rank with the least memory, or with the largest need."""
    partition: Partition | None = None
    """None: every rank holds all of it."""
    needs: tuple[MemoryNeed, ...] = ()
    """Of each rank, where it is cut."""


def chosen_partition(
    shape: ModelShape,
    plan: TrainPlan,
    devices: Sequence[DeviceAbilities],
    shard: str = AUTO,
    smaller: Sequence[ModelShape] = (),
    *,
    is_island: bool = False,
) -> PartitionChoice:
    """Return how a plan fits the devices of a gang.

    Args:
        shape: the model.
        plan: what was asked for.
        devices: of each rank, in their order; the whole is only ever held by as many as these.
        shard: `auto`, `off`, or a stage.
        smaller: other sizes, to name the nearest one that fits.
        is_island: the gang is one of several islands, so each rank keeps more.

    Raises:
        TooLargeForDeviceError: nothing fits.
        UsageError: something was asked for that a device can't do, or that isn't cut.
    """
    if is_island and plan.options.adapter is not None:
        shard = OFF  # islands compare their models by all of the base
    if shard in _STAGES:
        check_can_be_cut(shape, plan.options, shard)
        if len(devices) > 1:
            return _cut(shape, plan, devices, _STAGES[shard], is_island=is_island)
    smallest = _smallest(devices)
    whole, refused = _whole(shape, plan, smallest, smaller)
    if whole is not None and _keeps_all(plan.options, whole.plan.options):
        is_alone = len(devices) == 1 or shard == OFF
        kept = with_outer_state(whole.need, shape, smallest)
        if is_alone or not is_island or kept.fits(smallest):
            return PartitionChoice(whole)
    may_be_cut = len(devices) > 1 and is_cuttable(shape, plan.options)
    lacking = ""
    if may_be_cut and shard != OFF:
        try:
            return _cut(shape, plan, devices, stages_of(plan.options), is_island=is_island)
        except TooLargeForDeviceError as error:
            lacking = error.message
    if whole is not None and shard not in _STAGES:
        return PartitionChoice(whole)
    raise _refusal(refused, shape, plan.options, len(devices), lacking)


def is_cuttable(shape: ModelShape, options: EngineOptions) -> bool:
    """Say whether what the optimizer keeps can be cut anywhere: AdamW's can, of weights in fp32.

    Beside an adapter a frozen model can, unless it is quantized.
    """
    is_adamw = options.optimizer == "adamw" and options.weights == "fp32"
    return is_adamw and options.precision != "fp16" and not _is_quantized(shape, options)


def _is_quantized(shape: ModelShape, options: EngineOptions) -> bool:
    return options.adapter is not None and bool(options.adapter.bits or given_bits(shape.config))


def stages_of(options: EngineOptions) -> Sequence[int]:
    """Return the stages in which a model may be cut: beside an adapter weights alone are large."""
    return STAGES if options.adapter is None else (WEIGHTS,)


def check_can_be_cut(shape: ModelShape, options: EngineOptions, shard: str) -> None:
    """Raise UsageError where what was asked for can't be cut over ranks in this stage."""
    if options.adapter is not None and int(shard) not in stages_of(options):
        raise UsageError(
            f"--shard {shard}: beside an adapter the weights of its base are cut, which is stage 3",
            "choose --shard 3, or auto",
        )
    if is_cuttable(shape, options):
        return
    if _is_quantized(shape, options):
        raise UsageError(
            "--shard cuts no base that is quantized yet", "leave out --shard, or --quantize"
        )
    if options.precision == "fp16":
        raise UsageError(
            "--shard cuts no model that is trained in fp16", "--precision bf16, or auto"
        )
    what = "with Muon" if options.optimizer == "muon" else "with weights in bf16"
    raise UsageError(
        f"--shard cuts what AdamW keeps of weights in fp32, and this is trained {what}",
        "leave out --shard, or choose --optimizer adamw and weights in fp32",
    )


def _smallest(devices: Sequence[DeviceAbilities]) -> DeviceAbilities:
    """Return the one with the least memory; of those whose memory nobody knows, any."""
    sized = [device for device in devices if device.memory_bytes]
    return min(sized or devices, key=lambda device: device.memory_bytes)


def _whole(
    shape: ModelShape, plan: TrainPlan, device: DeviceAbilities, smaller: Sequence[ModelShape]
) -> tuple[Fit | None, TooLargeForDeviceError]:
    """Return the plan with the whole model on each rank, or why there is none."""
    try:
        return plan_that_fits(shape, plan, device, smaller), TooLargeForDeviceError("")
    except TooLargeForDeviceError as error:
        return None, error


def _keeps_all(asked: EngineOptions, found: EngineOptions) -> bool:
    """Say whether neither optimizer nor weights had to be others than asked."""
    return (asked.optimizer, asked.weights) == (found.optimizer, found.weights)


def _cut(
    shape: ModelShape,
    plan: TrainPlan,
    devices: Sequence[DeviceAbilities],
    stages: Sequence[int],
    *,
    is_island: bool,
) -> PartitionChoice:
    if any(resolve(plan.options, device, fits=True).scaler for device in devices):
        # Gradients that are cut can't be scaled as fp16 needs it.
        options = plan.options.model_copy(update={"precision": "fp32"})
        plan = plan.model_copy(update={"options": options})
    found = partition_that_fits(shape, plan, devices, stages, is_island=is_island)
    fit = replace(found.fit, changes=changes_of(plan, found.fit))
    return PartitionChoice(fit, found.partition, found.needs)


def _refusal(
    refused: TooLargeForDeviceError,
    shape: ModelShape,
    options: EngineOptions,
    ranks: int,
    lacking: str,
) -> TooLargeForDeviceError:
    """Return the refusal of the whole, with what cutting the model would take."""
    more = ""
    if lacking:
        more = f"add a machine, or name one that generates by --nodes: cut over these, {lacking}"
    elif is_cuttable(shape, options):
        more = "cut it over all of them: --shard auto" if ranks > 1 else "add a machine, and cut it"
    return TooLargeForDeviceError(refused.message, "; or ".join(filter(None, [refused.hint, more])))
