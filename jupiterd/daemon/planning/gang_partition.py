"""What of the model each rank of a gang holds, as its attempt begins.

Owns asking for it with what is known of the members, and saying what memory a gang lacks. Doesn't
know the choice (`cycle.training.partition.partition_choice`), or who is in the gang.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.training.asked_partition import asked_shard, memory_limits
from jupiterd.cycle.training.partition.partition import BASE_PARAM, PARAM, Partition
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.machine_devices import seats_of
from jupiterd.daemon.planning.partition_support import can_all_cut, lacking_names
from jupiterd.errors import MemoryMissingError, TooLargeForDeviceError
from jupiterd.ids import NodeId
from jupiterd.versions import UPGRADE

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.training.engine_options import DeviceAbilities
    from jupiterd.cycle.training.partition.partition_choice import PartitionChoice
    from jupiterd.cycle.training.plan import TrainPlan
    from jupiterd.daemon.planning.trained_round import TrainedRound


_UPGRADE: Final = f"upgrade that machine, {UPGRADE}, or remove it: jupiterctl node remove"


@dataclass(frozen=True)
class GangPartition:
    """How the model is cut over the ranks of one attempt."""

    partition: Partition
    needs_bytes: tuple[int, ...] = ()
    """Of each rank; empty: another leader has seen to it."""
    plan: "TrainPlan | None" = None
    """What each rank computes by, with nothing left to decide; None: another leader has told it."""
    is_of_base: bool = False
    """The frozen model beside an adapter is cut: every rank has all that is trained."""

    @classmethod
    def of_choice(cls, chosen: "PartitionChoice") -> "GangPartition | None":
        """Return what ranks are told of a choice; None: each holds everything."""
        if chosen.partition is None:
            return None
        switch = "on" if chosen.fit.gradient_checkpointing else "off"
        decided = {"micro_batch": "fixed", "gradient_checkpointing": switch}
        options = chosen.fit.plan.options.model_copy(update=decided)
        plan = chosen.fit.plan.model_copy(update={"options": options})
        needs_bytes = tuple(need.total for need in chosen.needs)
        return cls(chosen.partition, needs_bytes, plan, plan.options.adapter is not None)

    @classmethod
    def of_fact(cls, opened: AttemptOpened, *, is_of_base: bool) -> "GangPartition | None":
        """Return that of an attempt that another leader has opened; None: its ranks hold all."""
        if not opened.stage:
            return None
        return cls(Partition(opened.stage, opened.parts), is_of_base=is_of_base)

    def to_order(self) -> dict[str, Any]:
        """Return what a rank is told."""
        return {BASE_PARAM if self.is_of_base else PARAM: self.partition.to_plain()}


def partition_of_gang(
    machines: Machines,
    state: CycleState,
    trained_round: "TrainedRound",
    choice: EngineChoice,
    most_at_a_time: int = 0,
) -> GangPartition | None:
    """Return what each rank of a gang that is to begin holds; None: everything.

    Args:
        machines: the members.
        state: of the run or cycle.
        trained_round: what is trained.
        choice: engine and ranks, in their order.
        most_at_a_time: sequences that each rank held where one ran out of memory; 0: none has.

    Raises:
        MemoryMissingError: these can't hold it together, and it is waited for more.
    """
    shard, limits = asked_shard(state), memory_limits(state)
    seats = seats_of(machines, [choice], limits)
    is_known = len(seats) == len(choice.gang)
    if not shard or not seats:
        return None
    from jupiterd.cycle.training.partition.partition_choice import AUTO, chosen_partition

    is_island = bool(trained_round.parent)
    if is_island and len(seats) == 1:  # a stage is said of islands that have several ranks
        shard = AUTO

    plan = trained_round.plan
    if most_at_a_time:
        size = min(most_at_a_time, plan.micro_batch_sequences)
        plan = plan.model_copy(update={"micro_batch_sequences": size})
    devices = [seat.device for seat in seats]
    of_base = plan.options.adapter is not None
    if not (is_known and can_all_cut(machines, choice, of_base=of_base)):
        names = lacking_names(machines, choice, of_base=of_base)
        _check_whole(trained_round, plan, devices, names)
        return None
    try:
        shape = trained_round.shape
        chosen = chosen_partition(shape, plan, devices, shard, is_island=is_island)
    except TooLargeForDeviceError as error:
        message = _waits(machines, state, trained_round, choice, devices)
        raise MemoryMissingError(message, error.hint) from error
    if chosen.fit.changes and chosen.partition is None and _is_other(chosen, plan):
        raise MemoryMissingError(_waits(machines, state, trained_round, choice, devices))
    return GangPartition.of_choice(chosen)


def _check_whole(
    trained_round: "TrainedRound", plan: "TrainPlan", devices: "list[DeviceAbilities]", names: str
) -> None:
    """Raise MemoryMissingError where a model can be neither cut nor held by each rank."""
    from jupiterd.cycle.training.partition.partition_choice import OFF, chosen_partition

    size, who = trained_round.shape.size, names or "a member"
    message = f"{size} must be cut to fit, and {who} can't train a part of a model"
    try:
        chosen = chosen_partition(trained_round.shape, plan, devices, OFF)
    except TooLargeForDeviceError as error:
        raise MemoryMissingError(message, _UPGRADE) from error
    if _is_other(chosen, plan):
        raise MemoryMissingError(message, _UPGRADE)


def _is_other(chosen: "PartitionChoice", plan: "TrainPlan") -> bool:
    """Say whether it would fit with another optimizer, which no run changes on its way."""
    found, asked = chosen.fit.plan.options, plan.options
    return (found.optimizer, found.weights) != (asked.optimizer, asked.weights)


def _waits(
    machines: Machines,
    state: CycleState,
    trained_round: "TrainedRound",
    choice: EngineChoice,
    devices: "list[DeviceAbilities]",
) -> str:
    """Return what a gang waits for, and who has taken it away."""
    from jupiterd.cycle.training.partition.partition_memory import missing_bytes

    shape, plan = trained_round.shape, trained_round.plan
    is_island = bool(trained_round.parent)
    missing_gb = missing_bytes(shape, plan, devices, is_island=is_island) / 1e9
    gone = [
        f"{machines.name_of(node)} {'takes no part' if node in machines.answering() else 'is gone'}"
        for node in _members_before(state, trained_round.round)
        if node not in choice.gang
    ]
    why = f": {', '.join(gone)}" if gone else ""
    return f"{shape.size} waits for {missing_gb:.1f} GB more memory{why}"


def _members_before(state: CycleState, round_number: int) -> list[NodeId]:
    """Return who was in the round's last attempt."""
    opened = [each for each in state.attempts_opened.values() if each.round == round_number]
    last = max(opened, key=lambda each: each.attempt, default=None)
    return [] if last is None else sorted(set(last.gang))
