"""What a training would take of the machines that do it: refused where it can't be, else foretold.

Owns putting together what is said of it. Doesn't know the arithmetic (`cycle.training.memory`,
`cycle.runs.run_sheet`), or devices (`machine_devices`). A rank finds out for itself when it starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.planning.engines import EngineChoice, ranks_of
from jupiterd.cluster.planning.layout_choice import plan_document
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.adapter_support import without_bitsandbytes
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.daemon.planning.island_partition import (
    cut_islands,
    island_lines,
    island_values,
    shown_of,
)
from jupiterd.daemon.planning.layout_inputs import planned_layouts
from jupiterd.daemon.planning.machine_devices import Seat, seats_of, smallest_seat
from jupiterd.daemon.planning.node_micro_batch import as_planned, expected_micro_batch
from jupiterd.daemon.planning.partition_sheet import (
    exchange_cost,
    held_parts,
    partition_lines,
    partition_values,
    step_s_of,
)
from jupiterd.daemon.planning.partition_support import can_all_cut
from jupiterd.daemon.planning.requested_machines import ANYBODY, RequestedMachines
from jupiterd.daemon.planning.throughput_history import tokens_per_s_of_a_rank
from jupiterd.errors import JupiterError, TooLargeForDeviceError

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.runs.run_sheet import Gang
    from jupiterd.cycle.training.engine_options import DeviceAbilities, ResolvedOptions
    from jupiterd.cycle.training.memory import Fit
    from jupiterd.cycle.training.partition.partition_choice import PartitionChoice
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan


@dataclass(frozen=True)
class TrainingEstimate:
    """A plan that fits, and what is to be expected of it."""

    fit: "Fit"
    lines: Sequence[str]
    """For people, before anything starts."""
    values: dict[str, Any]
    """The same for programs; None where nobody knows."""
    layouts: dict[str, Any]
    """Who had best train with whom, and what else there is."""
    is_cut: bool = False
    """The model is cut over the ranks."""


def estimate(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    *,
    asked: RequestedMachines = ANYBODY,
    is_open: bool = False,
) -> TrainingEstimate:
    """Return the plan as it fits the smallest device of the gang.

    Args:
        fleet_view: what is known of the machines.
        choice: engine and members.
        shape: the model, with the vocabulary and the sequences that it will have.
        plan: what was asked for; 0 steps where nobody knows how many the data takes.
        asked: what it is to be trained on, where, and by which islands where it isn't one gang.
        is_open: the plan's batch is the most, as the data that decides isn't there yet.

    Raises:
        MissingExtraError: weights are to be quantized by what a machine lacks.
        TooLargeForDeviceError: no plan fits.
        UsageError: the engine can't load the model, or the device can't do what was asked for.
    """
    from jupiterd.cycle.runs.run_sheet import run_sheet
    from jupiterd.cycle.training.engine_options import resolve

    gangs = [EngineChoice(i.engine, i.nodes, "an island") for i in asked.chosen] or [choice]
    _check_engines(fleet_view.machines, gangs, shape, plan)
    seats = seats_of(fleet_view.machines, gangs, asked.limits)
    islands = cut_islands(fleet_view, gangs, shape, plan, asked) if asked.chosen else []
    if islands:
        chosen, seat = shown_of(islands)
    else:
        chosen = _chosen(fleet_view.machines, choice, seats, shape, plan, asked)
        seat = _tightest(seats, chosen)
    device, fit = seat.device, chosen.fit
    options = resolve(fit.plan.options, device, fits=not fit.gradient_checkpointing)
    machines = trainers(fleet_view.placement, asked.nodes)
    layouts = planned_layouts(fleet_view, choice, shape, fit.plan, machines, asked)
    ranks = _ranks(fleet_view.machines, gangs) if asked.chosen else len(choice.gang)
    before = ranks * tokens_per_s_of_a_rank(fleet_view.state, choice.engine, shape)
    speed = layouts.tokens_per_s or (0.0 if asked.chosen else before)
    if islands:
        told = island_lines(fleet_view, islands, shape)
        cut = _AsCut(speed, told, island_values(fleet_view, islands, shape))
    else:
        cut = _as_cut(fleet_view, choice, shape, chosen, seats, speed)
    whole = _whole(shape, plan, device, ranks, cut.tokens_per_s)
    here = fleet_view.micro_batch_file if seat.node == fleet_view.term.self_id else None
    decided = chosen.partition is not None or seat.node in asked.limits
    micro_batch = (
        as_planned(fit.plan)
        if decided
        else expected_micro_batch(seat, shape, fit.plan, options, here)
    )
    filled = _with(fit, shape, device, options, micro_batch.sequences)
    sheet = run_sheet(shape, filled.plan, options, filled.need, whole, is_open=is_open)
    changes = [f"to fit the smallest device: {', '.join(fit.changes)}"] if fit.changes else []
    engine = " and ".join(sorted({gang.engine for gang in gangs}))
    values = _values(shape, plan, filled, whole) | _computed(engine, options)
    values["micro_batch_from"] = micro_batch.source
    values |= {**_adapter(shape, plan), **cut.values}
    return TrainingEstimate(
        fit,
        [*sheet, *cut.lines, *micro_batch.lines(), *changes],
        values,
        plan_document(layouts, fleet_view.machines.names()),
        is_cut=chosen.partition is not None,
    )


def is_to_be_cut(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    asked: RequestedMachines,
) -> bool:
    """Say whether one gang of all that are asked cuts the model, or says what is lacking."""
    seats = seats_of(fleet_view.machines, [choice], asked.limits)
    whole = replace(asked, chosen=())
    try:
        return _chosen(fleet_view.machines, choice, seats, shape, plan, whole).partition is not None
    except TooLargeForDeviceError:
        return _can_cut(fleet_view.machines, choice, plan)
    except JupiterError:  # told later, with all that else is to be said
        return False


def _check_engines(
    machines: Machines, gangs: Sequence[EngineChoice], shape: "ModelShape", plan: "TrainPlan"
) -> None:
    """Raise UsageError where an engine can't do what is asked."""
    from jupiterd.cycle.training.adapters.quantized_base import check_quantized
    from jupiterd.cycle.training.architectures import check_engine
    from jupiterd.cycle.training.document_masking import check_documents_apart

    for gang in gangs:
        check_engine(gang.engine, shape)
    engines = [gang.engine for gang in gangs]
    check_quantized(engines, plan.options.adapter, without_bitsandbytes(machines, gangs))
    check_documents_apart(shape, plan.options)


def _chosen(
    machines: Machines,
    choice: EngineChoice,
    seats: Sequence[Seat],
    shape: "ModelShape",
    plan: "TrainPlan",
    asked: RequestedMachines,
) -> "PartitionChoice":
    """Return the plan as it fits; a refusal names the sizes that would fit."""
    from jupiterd.cycle.training.memory import plan_that_fits, with_snapshots
    from jupiterd.cycle.training.partition.partition_choice import (
        AUTO,
        PartitionChoice,
        chosen_partition,
    )
    from jupiterd.daemon.catalog.model_specs import presets

    device = smallest_seat(seats).device
    sizes = [] if not device.memory_bytes else [_sized(each, shape) for each in presets()]
    is_known = len(seats) == len(choice.gang)
    if asked.chosen or not is_known or not _can_cut(machines, choice, plan):
        found = PartitionChoice(plan_that_fits(shape, plan, device, sizes))
    else:
        devices = [seat.device for seat in seats]
        found = chosen_partition(shape, plan, devices, asked.shard or AUTO, sizes)
    if len(seats) > 1:
        return found
    need = with_snapshots(found.fit.need, shape, found.fit.plan, device)
    return replace(found, fit=replace(found.fit, need=need))


def _can_cut(machines: Machines, choice: EngineChoice, plan: "TrainPlan") -> bool:
    return can_all_cut(machines, choice, of_base=plan.options.adapter is not None)


def _tightest(seats: Sequence[Seat], chosen: "PartitionChoice") -> Seat:
    """Return the rank whose need is shown: that with the largest one, or the least memory."""
    if chosen.partition is None:
        return smallest_seat(seats)
    return seats[chosen.needs.index(chosen.fit.need)]


@dataclass(frozen=True)
class _AsCut:
    """What is told of a model that is cut over ranks."""

    tokens_per_s: float
    lines: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _as_cut(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    chosen: "PartitionChoice",
    seats: Sequence[Seat],
    tokens_per_s: float,
) -> _AsCut:
    """Return that, and the speed of such a gang; tokens_per_s: of one that holds everything."""
    partition, plan = chosen.partition, chosen.fit.plan
    if partition is None:
        return _AsCut(tokens_per_s)
    frozen = chosen.fit.need.frozen
    cost = exchange_cost(fleet_view, choice, shape, plan, partition, frozen)
    step_s = step_s_of(fleet_view, choice, shape, plan, tokens_per_s)
    slower = cost.slower(step_s) if cost.is_measured and step_s else None
    held = held_parts(fleet_view.machines, chosen, seats)
    return _AsCut(
        tokens_per_s / (1 + (slower or 0.0)),
        partition_lines(shape, chosen, held, slower, cost.lost_s),
        partition_values(chosen, held, slower, cost.lost_s),
    )


def _with(
    fit: "Fit",
    shape: "ModelShape",
    device: "DeviceAbilities",
    options: "ResolvedOptions",
    micro_batch: int,
) -> "Fit":
    """Return what fits with the micro batch that a rank takes there, to be shown."""
    from jupiterd.cycle.training.memory import memory_need

    if micro_batch == fit.plan.micro_batch_sequences:
        return fit
    plan = fit.plan.model_copy(update={"micro_batch_sequences": micro_batch})
    twice = options.gradient_checkpointing
    need = memory_need(shape, plan, options.precision, gradient_checkpointing=twice, device=device)
    return replace(fit, plan=plan, need=replace(need, snapshots=fit.need.snapshots))


def _whole(
    shape: "ModelShape",
    plan: "TrainPlan",
    device: "DeviceAbilities",
    ranks: int,
    tokens_per_s: float,
) -> "Gang":
    """Return what trains, as the page that people read sees it."""
    from jupiterd.cycle.runs.run_sheet import Gang
    from jupiterd.cycle.training.memory import flops_per_token

    flops_per_s = tokens_per_s * flops_per_token(shape, plan.options.adapter)
    return Gang(ranks, device.memory_bytes, flops_per_s, device.ram_bytes)


def _adapter(shape: "ModelShape", plan: "TrainPlan") -> dict[str, Any]:
    """Return which adapter is trained, and how large it is; nothing where all weights are."""
    from jupiterd.cycle.training.adapters.adapter_size import adapter_parameters

    if (adapter := plan.options.adapter) is None:
        return {}
    numbers = adapter_parameters(shape, adapter)
    return {"adapter": {"options": adapter.to_text(), "parameters": numbers}}


def _computed(engine: str, options: "ResolvedOptions") -> dict[str, Any]:
    """Return how the engines compute, for programs."""
    return {
        "engine": engine,
        "precision": options.precision,
        "optimizer": options.optimizer,
        "weights": options.weights,
        "gradient_checkpointing": options.gradient_checkpointing,
    }


def _values(shape: "ModelShape", plan: "TrainPlan", fit: "Fit", gang: "Gang") -> dict[str, Any]:
    """Return sizes, the batch and the time, for programs.

    plan: what was asked for; `fit` has it as it fits
    """
    from jupiterd.cycle.runs.run_sheet import Accumulation
    from jupiterd.cycle.training.architectures import parameter_count

    batch = Accumulation.of(fit.plan, gang.ranks)
    tokens, speed = (
        plan.steps * plan.batch_sequences * shape.seq_len,
        gang.tokens_per_s(shape, plan),
    )
    return {
        "parameters": parameter_count(shape),
        "vocab_size": shape.vocab_size,
        "memory_bytes_per_device": fit.need.on_device if gang.ram_bytes else fit.need.total,
        "device_memory_bytes": gang.memory_bytes or None,
        "micro_batch": batch.micro_batch,
        "accumulation": batch.steps,
        "ranks": gang.ranks,
        "batch_sequences": batch.sequences,
        "steps": plan.steps or None,
        "tokens": tokens or None,
        "tokens_per_s": round(speed, 1) or None,
        "eta_s": round(tokens / speed, 1) if speed and tokens else None,
        "changes": list(fit.changes),
    }


def _sized(preset: "ModelShape", like: "ModelShape") -> "ModelShape":
    """Return a preset with the vocabulary and the sequences of another."""
    from jupiterd.cycle.runs.run_plan import fitted

    return fitted(preset, like.seq_len, 0)


def _ranks(machines: Machines, gangs: Sequence[EngineChoice]) -> int:
    pairs = [(gang.engine, machines.hardware_of(node)) for gang in gangs for node in gang.gang]
    return sum(1 if machine is None else ranks_of(machine, engine) for engine, machine in pairs)
