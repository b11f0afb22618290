"""Islands whose model is cut over their ranks: which, how, and what is said of it beforehand.

Owns that for islands that are about to be recorded. Doesn't know how a gang is cut
(`partition_choice`); each attempt of an island cuts the model anew (`gang_partition`).

An island of one rank holds the model whole, whatever is asked. Where one can't as it was asked for,
all islands save on memory by what the optimizer keeps, as without parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.planning.machine_devices import Seat, seats_of
from jupiterd.daemon.planning.partition_sheet import (
    FP32_BYTES,
    held_parts,
    island_lost_s,
    partition_lines,
    partition_values,
)
from jupiterd.daemon.planning.partition_support import can_all_cut
from jupiterd.daemon.planning.requested_machines import RequestedMachines
from jupiterd.errors import TooLargeForDeviceError

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.training.partition.partition_choice import PartitionChoice
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan

SAVED_VECTORS: Final = 4
"""That an island's checkpoint has beside weights and moments, each as long as the weights."""


@dataclass(frozen=True)
class CutIsland:
    """One island whose model is cut."""

    number: int
    """From 1."""
    gang: EngineChoice
    seats: Sequence[Seat]
    chosen: "PartitionChoice"


def cut_islands(
    fleet_view: FleetView,
    gangs: Sequence[EngineChoice],
    shape: "ModelShape",
    plan: "TrainPlan",
    asked: RequestedMachines,
) -> list[CutIsland]:
    """Return the islands whose model is cut; none where all hold it whole.

    Raises:
        TooLargeForDeviceError: one of several ranks doesn't fit, or one rank alone where a stage is
            asked for.
        UsageError: something was asked for that isn't cut.
    """
    from jupiterd.cycle.training.partition.partition_choice import AUTO, OFF, chosen_partition

    machines = fleet_view.machines
    seats, found, at = seats_of(machines, gangs, asked.limits), list[CutIsland](), 0
    if len(seats) < sum(len(gang.gang) for gang in gangs):
        return []
    for number, gang in enumerate(gangs, 1):
        own = seats[at : (at := at + len(gang.gang))]
        is_cuttable = len(own) > 1 and can_all_cut(machines, gang)
        shard = (asked.shard or AUTO) if is_cuttable else OFF
        devices = [seat.device for seat in own]
        try:
            chosen = chosen_partition(shape, plan, devices, shard, is_island=True)
        except TooLargeForDeviceError:
            if is_cuttable:
                raise
            return []  # all of them are refused, or made smaller
        if chosen.partition is None and _is_smaller(chosen, plan):
            return _refused(asked, shape, own)
        if chosen.partition is not None:
            found.append(CutIsland(number, gang, own, chosen))
    return found


def _is_smaller(chosen: "PartitionChoice", plan: "TrainPlan") -> bool:
    found, asked = chosen.fit.plan.options, plan.options
    return (found.optimizer, found.weights) != (asked.optimizer, asked.weights)


def _refused(
    asked: RequestedMachines, shape: "ModelShape", seats: Sequence[Seat]
) -> list[CutIsland]:
    """Return no islands, or refuse a stage that not all of them can have beside them."""
    from jupiterd.cycle.training.partition.partition_choice import AUTO, OFF

    if asked.shard in ("", AUTO, OFF):
        return []
    has_gb = min(seat.device.memory_bytes for seat in seats) / 1e9
    message = f"{shape.size} doesn't fit an island that holds it whole, with {has_gb:.1f} GB"
    raise TooLargeForDeviceError(message, "put its machine into an island with others")


def island_lines(
    fleet_view: FleetView, islands: Sequence[CutIsland], shape: "ModelShape"
) -> list[str]:
    """Return what people are told of them before anything starts."""
    found = list[str]()
    for island in islands:
        lost_s = _lost_s(fleet_view, island, shape)
        held = held_parts(fleet_view.machines, island.chosen, island.seats)
        lines = partition_lines(shape, island.chosen, held, None, lost_s)
        found += [f"Island {island.number}: {lines[0]}", *lines[1:]]
    return found


def island_values(
    fleet_view: FleetView, islands: Sequence[CutIsland], shape: "ModelShape"
) -> dict[str, Any]:
    """Return the same for programs; nothing where no island's model is cut."""
    told = list[dict[str, Any]]()
    for each in islands:
        held = held_parts(fleet_view.machines, each.chosen, each.seats)
        values = partition_values(each.chosen, held, None, _lost_s(fleet_view, each, shape))
        told.append({"island": each.number, **values["partition"]})
    return {"partitions": told} if told else {}


def _lost_s(fleet_view: FleetView, island: CutIsland, shape: "ModelShape") -> float:
    """Return what a lost machine costs at the most, in seconds."""
    chosen = island.chosen
    if chosen.partition is None:
        return 0.0
    from jupiterd.cycle.training.architectures import parameter_count
    from jupiterd.cycle.training.memory import checkpoint_bytes

    saved = checkpoint_bytes(shape, chosen.fit.plan.options)
    saved += SAVED_VECTORS * FP32_BYTES * parameter_count(shape)
    return island_lost_s(fleet_view, island.gang, saved, chosen.partition)


def shown_of(islands: Sequence[CutIsland]) -> "tuple[PartitionChoice, Seat]":
    """Return the choice and the rank whose need is shown: the largest one."""
    largest = max(islands, key=lambda each: each.chosen.fit.need.total)
    chosen = largest.chosen
    return chosen, largest.seats[chosen.needs.index(chosen.fit.need)]
