"""What people are told to expect of a cycle's first round, and of the whole of it.

Owns putting those lines together. Doesn't know how any of it was foretold (`start_cycle`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.daemon.commands.model_size_choice import power_of
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.training_estimate import TrainingEstimate

if TYPE_CHECKING:
    from jupiterd.cycle.rounds.round_cost import CycleCost
    from jupiterd.cycle.runs.run_settings import RunSettings
    from jupiterd.cycle.runs.size_choice import SizeChoice
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan


@dataclass(frozen=True)
class Text:
    """What is known of a cycle's text before it is collected."""

    tokens: int
    """To train on, as whoever asks has counted or reckoned; 0: nobody knows."""
    has_base: bool
    """Round 1 begins with weights that others trained, or people want none."""
    has_adapter: bool = False
    """And with an adapter to them."""
    usual_adapter_of: str = ""
    """The machine whose settings ask for an adapter, where nobody else does."""


def least_batch(settings: "RunSettings", told: "Text", shape: "ModelShape") -> int:
    """Return the least sequences in a step that the data may lead to; 0 if its size is known."""
    return 0 if told.tokens // shape.seq_len else settings.least_batch


def sheet(
    told: "Text",
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
    expected: TrainingEstimate,
    cost: "CycleCost",
) -> list[str]:
    """Return the lines that tell people what to expect of the first round and of the cycle."""
    from jupiterd.cycle.runs.recorded_settings import OF_TUNING
    from jupiterd.cycle.training.tuning import tuning_lines, usual_adapter_lines
    from jupiterd.cycle.training.tuning_batch import batch_lines

    is_known = told.tokens >= shape.seq_len
    first = ["Starts from the adapter that was given"] if told.has_adapter else []
    return [
        *expected.lines,
        *first,
        *(tuning_lines(shape, plan) if settings.recipe == OF_TUNING else []),
        *usual_adapter_lines(told.usual_adapter_of),
        *batch_lines(plan.batch_sequences, settings.least_batch, is_known=is_known),
        *cost.lines(),
        *([] if told.has_base else _advice(expected, cost)),
    ]


def guessed_tokens_per_s(machines: Machines, gang: EngineChoice, shape: "ModelShape") -> float:
    """Return the throughput that the gang's hardware suggests, before anything was measured."""
    from jupiterd.cycle.training.memory import flops_per_token

    hardware = map(machines.hardware_of, dict.fromkeys(gang.gang))
    power = power_of(gang.engine, [machine for machine in hardware if machine is not None])
    return round(power.flops_per_s / flops_per_token(shape), 1)


def _advice(expected: "TrainingEstimate", cost: "CycleCost") -> list[str]:
    """Return why a large model had better begin with an open base model."""
    from jupiterd.cycle.runs.init_advice import advice

    return advice(int(expected.values["parameters"]), cost.tokens_per_s)


def size_reason(suiting: "SizeChoice", size: str, sheet: Sequence[str]) -> dict[str, Any]:
    """Return what a forecast says of the size that suits the text, where somebody has looked."""
    if not suiting.reason:
        return {}
    found: dict[str, Any] = {"size": {"size": suiting.size, "reason": suiting.reason}}
    if size == suiting.size:
        found["sheet"] = [f"Size {size}: {suiting.reason}", *sheet]
    return found
