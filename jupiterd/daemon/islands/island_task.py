"""The leader's care for one island of a run or a round: its gang trains as any, until that is over.

Owns that one part for one term. Doesn't know what islands exchange, or when (`island_coordinator`).
"""

from jupiterd.cluster.facts.facts import CycleStateSet, RoundCommitted
from jupiterd.cluster.ledger.cycle_state import STOPPED, CycleState
from jupiterd.cluster.ledger.island_runs import is_trained_in, least_batch_of, parent_of
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.leader.step_loop import step_until_finished
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import ROUND, training_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId


class IslandTask:
    """Conducts one island until it is trained or the term is over."""

    def __init__(self, services: TrainingServices, island: CycleId) -> None:
        self._services = services
        self._term, self._board = services.term, services.board
        self._island = island
        self._run = parent_of(services.term.cycle(island))
        training = services.term.cycle(island).training
        self._round = ROUND if training is None else training.parent_round
        """Of the run: a cycle has several."""
        self._least_batch = 0 if training is None else least_batch_of(training)

    async def run(self) -> None:
        """Go on from what the ledger says; an error that won't mend ends the island alone."""
        await step_until_finished(self._term, self._board, self._island, self._step)

    @property
    def _state(self) -> CycleState:
        return self._term.cycle(self._island)

    async def _step(self) -> None:
        last = self._state.last_checkpoint(ROUND)
        if last is not None and last.is_final:
            await self._term.record(RoundCommitted(self._island, ROUND, last.artifact, "", ""))
        elif self._is_over():
            edit = edit_after(self._state.wanted_edit)
            stopped = CycleStateSet(self._island, STOPPED, "what it is a part of is over", edit)
            await self._term.record(stopped)
        else:
            await self._train()

    def _is_over(self) -> bool:
        run = self._term.cycle(self._run)
        return run.has_nothing_to_do or is_trained_in(run, self._round)

    async def _train(self) -> None:
        state, shared_by = self._term.state, self._least_batch
        training = training_of(state, self._run, self._round, by_islands=True, ranks=shared_by)
        board = self._board
        board.begin(self._island, ROUND, Phase.TRAIN, now_s(), part_of=self._run)
        part = TrainedRound(self._island, ROUND, training.shape, training.plan, self._run)
        supervisor = GangSupervisor(self._services, part)
        await supervisor.train(training.data)
