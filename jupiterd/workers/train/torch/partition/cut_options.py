"""What a model can be computed with that is cut over ranks.

Owns the refusals, and what is decided otherwise than where a rank holds everything. Doesn't know
how it is computed.
"""

from dataclasses import replace

from jupiterd.cycle.training.adapters.given_quantized import given_bits
from jupiterd.cycle.training.engine_options import DeviceAbilities, ResolvedOptions, resolve
from jupiterd.cycle.training.memory import memory_need
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import UsageError

_NOT_COMPILED = "compile off: layers are exchanged while they are computed"


def cut_options(
    device: DeviceAbilities, shape: ModelShape, plan: TrainPlan, partition: Partition, rank: int
) -> ResolvedOptions:
    """Return how a rank computes its part of a plan.

    Raises:
        UsageError: something was asked for that can't be cut, or that the device can't do.
    """
    _check(shape, plan, partition)
    uncompiled = plan.options.model_copy(update={"compile": "off"})
    whole = memory_need(
        shape,
        plan,
        resolve(uncompiled, device, fits=True).precision,
        gradient_checkpointing=False,
        device=device,
    )
    share, ranks = partition.share(rank), len(partition.parts)
    need = need_of_part(whole, shape, partition.stage, share, ranks, device.engine)
    found = resolve(uncompiled, device, fits=need.fits(device))
    if found.scaler:
        raise UsageError(
            "a model that is cut over machines can't be trained in fp16",
            "choose precision bf16 or fp32",
        )
    return replace(found, reasons=(*found.reasons[:-1], _NOT_COMPILED))


def _check(shape: ModelShape, plan: TrainPlan, partition: Partition) -> None:
    options, what = plan.options, "a model that is cut over machines"
    if options.adapter is not None and (options.adapter.bits or given_bits(shape.config)):
        raise UsageError(f"{what} can't be quantized yet", "leave out --quantize")
    if options.adapter is not None and not partition.cuts_weights:
        raise UsageError(
            "beside an adapter the weights of its base are cut, which is stage 3",
            "choose --shard 3, or auto",
        )
    if options.optimizer != "adamw":
        raise UsageError(f"{what} can't be trained with Muon", "choose optimizer adamw")
    if options.weights != "fp32":
        raise UsageError(f"{what} can't have weights in bf16", "choose weights: fp32")
