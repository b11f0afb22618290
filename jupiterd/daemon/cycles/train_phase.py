"""Who trains a round of a cycle: one gang, or islands.

Owns that decision. It is taken once, when the round's training begins, of the machines that are
here then; what has begun is gone on with, whoever leads: a gang has opened an attempt or recorded a
checkpoint, islands have a line of outer steps. Doesn't know how either trains, or which islands
would be best (`island_plan`).
"""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import islands_in, least_batch_of
from jupiterd.cluster.planning.engines import TORCH, choose_engine
from jupiterd.cluster.planning.island_nodes import read, written
from jupiterd.cluster.training.named_trainers import most_ranks, named_trainers
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.islands.island_coordinator import IslandCoordinator
from jupiterd.daemon.islands.island_plan import islands_of_round, ranks_in, wanted_of_round
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import TRAINED_BY, ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.adapter_support import is_quantized
from jupiterd.daemon.planning.gang_plan import TRAINING_ROLES, trainers
from jupiterd.daemon.planning.requested_machines import AUTO_ISLANDS, OFF
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import TrainingSpec, training_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import MissingExtraError
from jupiterd.ids import CycleId, NodeId

log = logging.getLogger(__name__)

PATIENCE_S = 5.0
"""How long a machine that trained before is waited for: all may just have been started again."""

LOOK_S = 0.25


async def trainer_of_round(
    services: TrainingServices, cycle: CycleId, round_number: int
) -> GangSupervisor | IslandCoordinator:
    """Return what conducts the training of a round that is packed, and not trained yet.

    Raises:
        PeerUnreachableError: nobody who is alive can train.
    """
    training, state = (
        training_of(services.term.state, cycle, round_number),
        services.term.cycle(cycle),
    )
    whole = TrainedRound(cycle, round_number, training.shape, training.plan)
    by_one_gang = GangSupervisor(services, whole)
    if _has_gang(state, training):
        return by_one_gang
    if not state.outer_branch(round_number):
        training = await _decided(services.term, services.board, services.fleet_view, training)
        if not training.settings.island_nodes:
            return by_one_gang
    ranks = _ranks(services.term, services.machines, training)
    apart = training_of(services.term.state, cycle, round_number, by_islands=True, ranks=ranks)
    nodes = {"island_nodes": training.settings.island_nodes}
    return IslandCoordinator(
        services, replace(apart, settings=apart.settings.model_copy(update=nodes))
    )


def ranks_here(term: Term, placement: Placement, cycle: CycleId) -> int:
    """Return the ranks of the gang that could train a round now; 0 where its steps are as asked.

    Where the text decides how many sequences a step has, each of them takes one: a machine that
    came after the cycle's start would have nothing to do otherwise.
    """
    state = term.cycle(cycle)
    begun = state.started
    if begun is None or not begun.settings.get("least_batch"):
        return 0
    machines = trainers(placement, named_trainers(state))
    try:
        choice = choose_engine(begun.engine, machines, most_ranks=most_ranks(state) or None)
    except MissingExtraError:  # nobody who is here has it
        return 0
    return len(choice.gang)


def _ranks(term: Term, machines: Machines, training: TrainingSpec) -> int:
    """Return how many ranks share a step, of islands that have begun or are to begin.

    Where they have begun, that many are recorded: whoever leads has the same plan.
    """
    cycles, run = term.state.cycles, training.started.cycle
    begun = [least_batch_of(island) for _, island in islands_in(cycles, run, training.round)]
    return max(begun) if begun else ranks_in(machines, read(training.settings.island_nodes))


def _has_gang(state: CycleState, training: TrainingSpec) -> bool:
    """Say whether one gang has begun; where groups that were apart did either, its steps count."""
    if state.last_checkpoint(training.round) is not None:
        return True
    begun = (training.round, training.start)
    opened = state.attempts_opened.values()
    places = ((each.round, each.follows or each.from_checkpoint) for each in opened)
    return begun in places and not state.outer_branch(training.round)


async def _decided(
    term: Term, board: ProgressBoard, fleet_view: FleetView, training: TrainingSpec
) -> TrainingSpec:
    """Return the training with the islands that are best now; as it was where one gang is."""
    settings = training.settings
    if settings.islands == OFF:
        return training
    named = training.started.nodes
    await _gather(term, fleet_view.placement, named)
    engine = training.started.engine
    needs = engine == TORCH and is_quantized(settings.lora)
    wanted = replace(wanted_of_round(engine, settings, named), needs_bitsandbytes=needs)
    islands = islands_of_round(fleet_view, wanted, training.shape, training.plan, settings)
    extra = {"cycle": training.started.cycle, "round": training.round, "islands": len(islands)}
    log.info("round_is_trained_by", extra=extra)
    is_asked = settings.islands != AUTO_ISLANDS
    trained_by = _trained_by(
        len(islands), len(trainers(fleet_view.placement, wanted.nodes)), is_asked=is_asked
    )
    board.note(training.started.cycle, {TRAINED_BY: trained_by})
    nodes = {"island_nodes": written(islands)}
    return replace(training, settings=settings.model_copy(update=nodes))


def _trained_by(islands: int, machines: int, *, is_asked: bool) -> str:
    """Return who trains a round, and why, for people; nothing where one machine is all there is."""
    if islands:
        why = "as asked" if is_asked else "as planned of who is here"
        return f"{islands} islands train this round, {why}"
    if machines == 1 and not is_asked:
        return ""
    lacks = "can be made up of who is here" if is_asked else "are known to be better"
    return f"one gang trains this round, no islands {lacks}"


async def _gather(term: Term, placement: Placement, named: Collection[NodeId]) -> None:
    """Wait a moment for members that have trained and aren't here."""
    state = term.state
    roles = {node: role.role for node, role in state.roles.items() if node in state.members}
    wanted = {*named} or {node for node, role in roles.items() if role in TRAINING_ROLES}
    until_s = now_s() + PATIENCE_S
    while wanted - trainers(placement, named).keys() and now_s() < until_s:  # noqa: ASYNC110 - roles change without telling
        await asyncio.sleep(LOOK_S)
