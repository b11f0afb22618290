"""Who trains in an attempt, on which engine, and from what.

Owns that plan: a new one, or that of an attempt which is open. Doesn't know how a gang is run.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.trunk import start_of
from jupiterd.cluster.planning.engines import MLX, EngineChoice, choose_engine
from jupiterd.cluster.training.asked_backend import nccl_refusal
from jupiterd.cluster.training.named_trainers import most_ranks, named_trainers
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.planning import adapter_support
from jupiterd.daemon.planning.adapter_support import that_train_it
from jupiterd.daemon.planning.gang_partition import GangPartition
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import MissingExtraError, NcclFailedError, PeerUnreachableError
from jupiterd.ids import NodeId

TRAINING_ROLES = frozenset({"trainer", "hybrid"})

MAX_REASON_CHARACTERS = 160
"""Of an attempt's end, where it is a reason for what comes next."""


@dataclass(frozen=True)
class GangPlan:
    """One attempt, about to start or running."""

    attempt: int
    choice: EngineChoice
    from_checkpoint: str
    from_step: int
    began_s: float
    micro_batches: tuple[int, ...] = ()
    """Sequences that each rank holds in memory at a time; empty: as the plan says."""
    late: frozenset[NodeId] = frozenset()
    """Members that begin without the state, and fetch it while the others train."""
    follows: str = ""
    """The line's end that its checkpoints hang below; empty: the one it starts from."""
    predicted_tokens_per_s: float = 0.0
    """0: nobody can know."""
    partition: GangPartition | None = None
    """What of the model each rank holds; None: all of it."""

    @property
    def gang(self) -> tuple[NodeId, ...]:
        """Return the members in rank order."""
        return self.choice.gang

    @property
    def cuts_state(self) -> bool:
        """Say whether no rank has all that is trained."""
        return self.partition is not None and not self.partition.is_of_base

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """Return the members once each, in the order of their first ranks."""
        return tuple(dict.fromkeys(self.gang))

    @property
    def late_ranks(self) -> tuple[int, ...]:
        """Return the ranks that begin without it."""
        return tuple(rank for rank, node in enumerate(self.gang) if node in self.late)

    @property
    def is_ring(self) -> bool:
        """Say whether the ranks meet in a ring, without a store."""
        return self.choice.engine == MLX and len(self.gang) > 1

    @classmethod
    def of(cls, opened: AttemptOpened, *, is_of_base: bool = False) -> "GangPlan":
        """Return the plan of an attempt that was opened before; we know of it from now on.

        is_of_base: where something is cut, it is the frozen model beside an adapter
        """
        engine, _, backend = opened.engine.partition("/")
        choice = EngineChoice(engine, opened.gang, opened.engine_reason, backend)
        return cls(
            opened.attempt,
            choice,
            opened.from_checkpoint,
            opened.from_step,
            now_s(),
            opened.micro_batches,
            follows=opened.follows,
            predicted_tokens_per_s=opened.predicted_tokens_per_s,
            partition=GangPartition.of_fact(opened, is_of_base=is_of_base),
        )


def plan_launch(
    state: CycleState, round_number: int, attempt: int, choice: EngineChoice
) -> GangPlan:
    """Plan the next attempt of a round: where it goes on, with whoever was chosen."""
    last = state.last_checkpoint(round_number)
    start, end = start_of(state, round_number), state.start_of(round_number)
    return GangPlan(
        attempt=attempt,
        choice=choice,
        from_checkpoint=start if last is None else last.artifact,
        from_step=0 if last is None else last.step,
        began_s=now_s(),
        follows=end if last is None and end != start else "",
    )


def choose(
    placement: Placement,
    state: CycleState,
    *,
    max_ranks: int,
    without: AbstractSet[NodeId] = frozenset(),
    shunned: AbstractSet[NodeId] = frozenset(),
) -> EngineChoice:
    """Return who would train just now, and on what, with at most so many ranks.

    Args:
        placement: who may be given work.
        state: of the cycle whose round is trained.
        max_ranks: more would have nothing to do.
        without: who can't take part.
        shunned: who takes part only where nobody else can.

    Raises:
        PeerUnreachableError: nobody who is alive can train, on the engine that was asked for.
    """
    named = named_trainers(state)
    machines = trainers(placement, named, without)
    machines = {node: machines[node] for node in machines if node not in shunned} or machines
    if not machines:
        placement.check_not_drained("can train", named)
        raise PeerUnreachableError("no node that is alive can train")
    machines = that_train_it(machines, state)
    max_ranks = min(max_ranks, most_ranks(state) or max_ranks)
    try:
        choice = choose_engine(
            state.wanted_engine, machines, most_ranks=max_ranks, nccl_failure=nccl_failure(state)
        )
    except MissingExtraError as error:  # when the cycle began, somebody had it
        raise PeerUnreachableError(error.message, error.hint) from error
    return choice


def left_out(placement: Placement, state: CycleState) -> Mapping[NodeId, str]:
    """Return who would train just now if it could train the adapter of a run, and why it can't."""
    return adapter_support.left_out(trainers(placement, named_trainers(state)), state)


def nccl_failure(cycle: CycleState) -> str:
    """Return why an attempt of this cycle or run couldn't use NCCL; empty where none has failed.

    The ledger has it, so whoever leads next knows it too.
    """
    asked = cycle.training or cycle.started
    if asked is not None and (refused := nccl_refusal(asked.settings)):
        return refused
    for attempt, closed in sorted(cycle.attempts_closed.items()):
        if closed.code == NcclFailedError.code:
            return f"NCCL failed in attempt {attempt}: {closed.reason[:MAX_REASON_CHARACTERS]}"
    return ""


def trainers(
    placement: Placement, named: Collection[NodeId] = (), without: AbstractSet[NodeId] = frozenset()
) -> dict[NodeId, Hardware]:
    """Return the machines that would train just now, in rank order.

    Where people have named some, those train, whatever their roles; without a trainer, any one. A
    trainer that can't take part just now is one all the same: it is waited for.
    """
    seats = [seat for seat in placement.seats() if seat.has_engine]
    able = [seat for seat in seats if seat.node not in without]
    if named:
        chosen = [seat for seat in able if seat.node in named]
    elif any(seat.role in TRAINING_ROLES for seat in seats):
        chosen = [seat for seat in able if seat.role in TRAINING_ROLES]
    else:
        chosen = able[:1]
    found = {seat.node: placement.machines.hardware_of(seat.node) for seat in chosen}
    return {node: hardware for node, hardware in found.items() if hardware is not None}
