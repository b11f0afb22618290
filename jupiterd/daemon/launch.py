"""Who trains in the next epoch, on which engine, and from what.

Owns that plan. Doesn't know how a gang is run.
"""

from dataclasses import dataclass, replace

from jupiterd.cluster.engines import EngineChoice, choose_engine
from jupiterd.cluster.hardware import Hardware
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.leading import Leading
from jupiterd.errors import MissingExtraError, PeerUnreachableError
from jupiterd.ids import CycleId, NodeId


@dataclass(frozen=True)
class Launch:
    """One epoch about to start."""

    epoch: int
    choice: EngineChoice
    from_checkpoint: str
    from_step: int
    began_s: float

    @property
    def gang(self) -> tuple[NodeId, ...]:
        """Return the members in rank order."""
        return self.choice.gang


def plan_launch(leading: Leading, cycle: CycleId, round_number: int, *, max_ranks: int) -> Launch:
    """Plan the next epoch of a round, with at most so many ranks.

    Raises:
        PeerUnreachableError: nobody who is alive can train, on the engine that was asked for.
    """
    state = leading.cycle(cycle)
    wanted = "auto" if state.started is None else state.started.engine
    machines = trainers(leading)
    if not machines:
        raise PeerUnreachableError("no node that is alive can train")
    try:
        choice = choose_engine(wanted, machines)
    except MissingExtraError as error:  # when the cycle began, somebody had it
        raise PeerUnreachableError(error.message, error.hint) from error
    last = state.last_checkpoint(round_number)
    start = last or state.last_checkpoint(round_number - 1)
    return Launch(
        epoch=leading.next_epoch(),
        choice=replace(choice, gang=choice.gang[:max_ranks]),
        from_checkpoint="" if start is None else start.artifact,
        from_step=0 if last is None else last.step,
        began_s=now_s(),
    )


def trainers(leading: Leading) -> dict[NodeId, Hardware]:
    """Return the machines that would train just now, in rank order; without a trainer, any one."""
    seats = [seat for seat in leading.seats() if seat.has_engine]
    chosen = [seat for seat in seats if seat.role in ("trainer", "hybrid")] or seats[:1]
    found = {seat.node: leading.hardware_of(seat.node) for seat in chosen}
    return {node: hardware for node, hardware in found.items() if hardware is not None}
