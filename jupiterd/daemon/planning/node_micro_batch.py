"""How many sequences a rank of a machine holds at a time, before it has tried.

Owns asking for it with what is known of a machine from afar. Doesn't know the rule
(`cycle.micro_batches.device_default`), or what a rank finds out itself.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jupiterd import __version__
from jupiterd.cluster.planning.rank_placement import CUDA
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.peak_flops import peak_flops_per_s
from jupiterd.daemon.planning.machine_devices import Seat, device_of, limited

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.training.engine_options import DeviceAbilities, ResolvedOptions
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan

CPU = "cpu"


@dataclass(frozen=True)
class ExpectedMicroBatch:
    """What a rank is going to hold at a time, as far as that is known before it has begun."""

    sequences: int
    source: Literal["asked", "size", "default", "measured"]
    tokens_per_s: float = 0.0
    """Where it was measured."""
    is_tried: bool = True
    """Its device is one on which ranks try others."""

    def lines(self) -> list[str]:
        """Return what people are told of it; nothing of a CPU, on which little hangs on it."""
        if not self.is_tried and self.source != "asked":
            return []
        why = {
            "asked": "as asked",
            "default": "fill such a GPU as far as its class tells; others are tried before the "
            "first step",
            "measured": f"measured here before, {self.tokens_per_s:,.0f} tokens/s",
        }
        return [f"Micro batches of {self.sequences}: {why[self.source]}"]


def as_planned(plan: "TrainPlan") -> ExpectedMicroBatch:
    """Return what a rank holds at a time that has nothing to decide."""
    return ExpectedMicroBatch(plan.micro_batch_sequences, "size", is_tried=False)


def plan_on(
    engine: str,
    machine: Hardware | None,
    shape: "ModelShape",
    plan: "TrainPlan",
    most_bytes: int = 0,
) -> "TrainPlan":
    """Return a plan with the micro batch of a rank there; of a machine nobody knows as it is.

    most_bytes: that it may use of its device; 0: all of it
    """
    if machine is None:
        return plan
    if most_bytes:
        return _limited_plan(limited(device_of(engine, machine), most_bytes), shape, plan)
    size = micro_batch_on(device_of(engine, machine), machine, shape, plan)
    return plan.model_copy(update={"micro_batch_sequences": size})


def _limited_plan(device: "DeviceAbilities", shape: "ModelShape", plan: "TrainPlan") -> "TrainPlan":
    """Return the plan that fits a part of a device, of which a rank there knows nothing."""
    from jupiterd.cycle.training.memory import candidate_fits, cost_of

    fitting = [fit for fit in candidate_fits(shape, plan, device) if fit.need.fits(device)]
    if not fitting:  # whoever is asked for room says so
        return plan
    best = min(fitting, key=lambda fit: cost_of(shape, fit))
    switch = "on" if best.gradient_checkpointing else "off"
    decided = {"micro_batch": "fixed", "gradient_checkpointing": switch}
    options = best.plan.options.model_copy(update=decided)
    return best.plan.model_copy(update={"options": options})


def micro_batch_on(
    device: "DeviceAbilities", machine: Hardware, shape: "ModelShape", plan: "TrainPlan"
) -> int:
    """Return the sequences that a rank holds at a time on a device of a machine."""
    from jupiterd.cycle.micro_batches.device_default import (
        default_micro_batch,
        guessed_flops_per_s,
    )

    peaks = [peak_flops_per_s(gpu.name) or 0.0 for gpu in machine.working_gpus if gpu.kind == CUDA]
    return default_micro_batch(
        shape, plan, device, guessed_flops_per_s(device, min(peaks, default=0.0))
    )


def expected_micro_batch(
    seat: Seat,
    shape: "ModelShape",
    plan: "TrainPlan",
    options: "ResolvedOptions",
    file: Path | None,
) -> ExpectedMicroBatch:
    """Return what a rank there is going to hold at a time.

    options: as they are resolved; file: of choices made before, None where it isn't this node's
    """
    device = seat.device
    if plan.options.micro_batch == "fixed":
        return ExpectedMicroBatch(plan.micro_batch_sequences, "asked")
    is_tried = device.kind != CPU
    here = file if is_tried else None
    if here is not None and (found := _measured(seat, shape, plan, options, here)):
        return found
    size = micro_batch_on(device, seat.machine, shape, plan)
    source = "size" if size == plan.micro_batch_sequences and not is_tried else "default"
    return ExpectedMicroBatch(size, source, is_tried=is_tried)


def _measured(
    seat: Seat, shape: "ModelShape", plan: "TrainPlan", options: "ResolvedOptions", file: Path
) -> ExpectedMicroBatch | None:
    from jupiterd.cycle.micro_batches.known_choices import kept_choice, key_of

    engine, gpus = seat.device.engine, seat.machine.working_gpus
    versions = {"jupiterd": __version__, engine: dict(seat.machine.versions).get(engine, "")}
    name = gpus[0].name if gpus else seat.device.kind
    text = ""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text(encoding="utf-8")
    adapter = plan.options.adapter
    key = key_of(shape, plan.batch_sequences, options, name, versions, adapter)
    choice = kept_choice(text, key)
    if choice is None or not choice.is_made:
        return None
    source = "measured" if choice.tokens_per_s else "default"
    return ExpectedMicroBatch(choice.micro_batch, source, choice.tokens_per_s)
