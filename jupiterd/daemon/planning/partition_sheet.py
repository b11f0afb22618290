"""What people are told of a model that is cut over machines: who holds what, and what that costs.

Owns these words, and the same for programs. Doesn't know how it is cut (`partition_choice`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cluster.links.allreduce_cost import Wire, all_reduce_s, cut_exchange_s
from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cycle.training.partition.partition import Partition, gathered_bytes, sent_numbers
from jupiterd.cycle.training.partition.pass_count import pass_count
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.device_speed import guessed_flops_per_s
from jupiterd.daemon.planning.machine_devices import Seat
from jupiterd.daemon.planning.rank_order import qualities
from jupiterd.formats import duration
from jupiterd.ids import NodeId

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.training.partition.partition_choice import PartitionChoice
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan

FP32_BYTES: Final = 4

SLOWEST_DISK_BYTES_PER_S: Final = 200e6
"""Of disks that models are trained on."""

WHAT_IS_CUT: Final = {
    1: "what the optimizer keeps is cut",
    2: "gradients and what the optimizer keeps are cut",
    3: "weights, gradients and what the optimizer keeps are cut",
}

BASE_IS_CUT: Final = "the weights beside the adapter are cut"
BASE_LOSSES: Final = (
    "Each has all of the adapter: a machine that is lost costs a step at most, and its part of the "
    "weights is read again from their files"
)

_GATHERINGS: Final = 2
"""Of a frozen layer in a pass: forwards, and backwards for the gradient of what went into it."""


@dataclass(frozen=True)
class Holding:
    """What one rank has of a model, and of its device."""

    node: NodeId
    name: str
    part: float
    """From 0 to 1."""
    used_bytes: int
    memory_bytes: int
    """That it may use; 0: nobody knows."""


@dataclass(frozen=True)
class ExchangeCost:
    """What ranks exchange in a step, in seconds."""

    whole_s: float
    """Where each holds everything."""
    cut_s: float
    """As it is cut."""
    lost_s: float
    """At the most, with a machine: since the last checkpoint that is whole at the leader; 0: every
    rank has all that is saved."""
    is_measured: bool
    """All links between the machines were measured."""

    def slower(self, step_s: float) -> float:
        """Return by which share a step is longer; step_s: of a gang that holds everything."""
        return (self.cut_s - self.whole_s) / step_s if step_s else 0.0


def exchange_cost(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    partition: Partition,
    frozen_bytes: int = 0,
) -> ExchangeCost:
    """Return what exchanging takes by the links that are known; others carry what is usual.

    frozen_bytes: of the frozen model beside an adapter, which is what is cut; 0: all is trained
    """
    from jupiterd.cycle.training.architectures import parameter_count
    from jupiterd.cycle.training.memory import checkpoint_bytes
    from jupiterd.cycle.training.partition.partition_memory import unit_sizes

    ranks, wires = len(choice.gang), _wires(fleet_view, choice)
    parameters, share = parameter_count(shape), -(-plan.batch_sequences // ranks)
    passes = pass_count([share] * ranks, [plan.micro_batch_sequences] * ranks)
    if frozen_bytes:
        return _cost_beside_adapter(shape, plan, partition, passes, frozen_bytes, wires)
    numbers = sent_numbers(parameters, partition, ranks, passes, unit_sizes(shape)[1])
    messages = _exchanges(partition, passes) * (shape.layers + 1)
    return ExchangeCost(
        all_reduce_s(parameters, FP32_BYTES, ranks, wires),
        cut_exchange_s(numbers * FP32_BYTES, messages, wires),
        _lost_s(checkpoint_bytes(shape, plan.options), partition, wires),
        all(wire.is_measured for wire in wires),
    )


def island_lost_s(
    fleet_view: FleetView, choice: EngineChoice, saved_bytes: int, partition: Partition
) -> float:
    """Return what a lost machine of an island costs at the most, in seconds.

    saved_bytes: of a checkpoint, which has more than that of a gang
    """
    return _lost_s(saved_bytes, partition, _wires(fleet_view, choice))


def _wires(fleet_view: FleetView, choice: EngineChoice) -> list[Wire]:
    nodes = dict.fromkeys(choice.gang)
    known = qualities(fleet_view.connectivity, nodes)
    return [Wire.of(known[pair]) for pair in combinations(nodes, 2)]


def _cost_beside_adapter(
    shape: "ModelShape",
    plan: "TrainPlan",
    partition: Partition,
    passes: int,
    frozen_bytes: int,
    wires: Sequence[Wire],
) -> ExchangeCost:
    """Return the same where a frozen model is cut: the adapter's gradients are summed, as ever."""
    from jupiterd.cycle.training.adapters.adapter_size import trained_parameters
    from jupiterd.cycle.training.architectures import parameter_count
    from jupiterd.cycle.training.partition.partition_memory import unit_sizes

    ranks = len(partition.parts)
    summed_s = all_reduce_s(trained_parameters(shape, plan.options), FP32_BYTES, ranks, wires)
    outside = round(frozen_bytes * unit_sizes(shape)[1] / parameter_count(shape))
    sent = gathered_bytes(frozen_bytes - outside, outside, partition, passes)
    gathered_s = cut_exchange_s(sent, _GATHERINGS * passes * (shape.layers + 1), wires)
    is_measured = all(wire.is_measured for wire in wires)
    return ExchangeCost(summed_s, summed_s + gathered_s, 0.0, is_measured)


def _lost_s(size_bytes: int, partition: Partition, wires: Sequence[Wire]) -> float:
    """Return how old the last checkpoint may be that is put together of so many bytes."""
    from jupiterd.cycle.training.save_clock import joint_interval_s, most_lost_s

    shares = [partition.share(rank) for rank in range(len(partition.parts))]
    written_s = size_bytes * max(shares) / SLOWEST_DISK_BYTES_PER_S
    slowest = min((wire.bytes_per_s for wire in wires), default=SLOWEST_DISK_BYTES_PER_S)
    fetched_s = size_bytes * (1 - min(shares)) / slowest
    return most_lost_s(joint_interval_s(written_s), fetched_s)


def _exchanges(partition: Partition, passes: int) -> int:
    """Return how often each unit is exchanged in a step."""
    if partition.cuts_weights:
        return 3 * passes
    return (passes if partition.cuts_gradients else 1) + 1


def step_s_of(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    tokens_per_s: float,
) -> float:
    """Return how long a step takes of a gang that holds everything, as measured or by classes."""
    from jupiterd.cycle.training.memory import flops_per_token

    tokens = plan.batch_sequences * shape.seq_len
    if tokens_per_s:
        return tokens / tokens_per_s
    found = map(fleet_view.machines.hardware_of, dict.fromkeys(choice.gang))
    flops_per_s = sum(guessed_flops_per_s(choice.engine, each) for each in found if each)
    return tokens * flops_per_token(shape) / flops_per_s if flops_per_s else 0.0


def held_parts(
    machines: Machines, chosen: "PartitionChoice", seats: Sequence[Seat]
) -> list[Holding]:
    """Return what each rank holds; nothing where all hold everything."""
    if (partition := chosen.partition) is None:
        return []
    return [
        Holding(
            seat.node,
            machines.name_of(seat.node),
            partition.share(rank),
            need.on_device if seat.device.ram_bytes else need.total,
            seat.device.memory_bytes,
        )
        for rank, (need, seat) in enumerate(zip(chosen.needs, seats, strict=True))
    ]


def partition_lines(
    shape: "ModelShape",
    chosen: "PartitionChoice",
    held: Sequence[Holding],
    slower: float | None,
    lost_s: float,
) -> list[str]:
    """Return what people are told before anything starts; nothing where all hold everything.

    Args:
        shape: the model.
        chosen: how it is cut.
        held: by each rank.
        slower: by which share a step is longer; None: nobody knows.
        lost_s: at the most, with a machine.
    """
    if (partition := chosen.partition) is None:
        return []
    stage, names = partition.stage, [holding.name for holding in held]
    many = "machines" if len(set(names)) == len(names) else "ranks"
    is_of_base = chosen.fit.plan.options.adapter is not None
    cut = BASE_IS_CUT if is_of_base else WHAT_IS_CUT[stage]
    what = f"{shape.size} over {len(names)} {many}, stage {stage}: {cut}"
    return [
        f"{what}; {_slower(slower)}",
        f"Each holds: {'; '.join(_lines_of(held))}",
        BASE_LOSSES if is_of_base else _losses(lost_s),
    ]


def _slower(share: float | None) -> str:
    if share is None:
        return "how much slower than whole isn't known before its links are measured"
    return (
        f"about {100 * share:.0f} % slower than whole"
        if share >= 0.005
        else "about as fast as whole"
    )


def _lines_of(held: Sequence[Holding]) -> Iterator[str]:
    often = Counter(holding.name for holding in held)
    for rank, holding in enumerate(held):
        of = f" of {holding.memory_bytes / 1e9:.1f}" if holding.memory_bytes else ""
        which = f" (rank {rank})" if often[holding.name] > 1 else ""
        size = f"{holding.used_bytes / 1e9:.1f}{of} GB"
        yield f"{holding.name}{which} {100 * holding.part:.0f} % of it, {size}"


def _losses(lost_s: float) -> str:
    """Return what a death costs: no other rank has what the lost one held."""
    most = f"about {duration(lost_s)} at the most"
    return f"A machine that is lost costs what came since the last whole checkpoint: {most}"


def partition_values(
    chosen: "PartitionChoice",
    held: Sequence[Holding],
    slower: float | None,
    lost_s: float,
) -> dict[str, Any]:
    """Return the same for programs; nothing where all hold everything."""
    if chosen.partition is None:
        return {}
    members = [
        {
            "rank": rank,
            "node": holding.node,
            "name": holding.name,
            "part": round(holding.part, 4),
            "bytes": holding.used_bytes,
            "memory_bytes": holding.memory_bytes or None,
        }
        for rank, holding in enumerate(held)
    ]
    share = None if slower is None else round(slower, 4)
    told = {"slower": share, "lost_s": round(lost_s, 1), "members": members}
    return {"partition": {"stage": chosen.partition.stage, **told}}
