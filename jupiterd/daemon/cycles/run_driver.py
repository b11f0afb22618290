"""The leader's walk of one run: a data set, training, or both, without the rounds of a cycle.

Owns one run for one term. Doesn't know how items are done (workers), what comes next (`run_phases`)
or how gangs hold (`gang_supervisor`).
"""

import logging

from jupiterd.cluster.facts.facts import ManifestFrozen, RoundCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import stopped_with
from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.phases.steps import RunItems, TrainRound
from jupiterd.cycle.runs.run_phases import CloseRun, FreezeManifest, RunView, next_run_step
from jupiterd.cycle.runs.run_plan import sequences_in
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.islands.island_coordinator import IslandCoordinator
from jupiterd.daemon.leader.step_loop import step_until_finished
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import ROUND, data_of, result_of, training_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import BranchChangedError, Bug, JupiterError
from jupiterd.ids import ArtifactId, CycleId

log = logging.getLogger(__name__)


class RunDriver:
    """Conducts one run until it is finished or the term is over."""

    def __init__(self, services: TrainingServices, run: CycleId) -> None:
        self._services = services
        self._term, self._board = services.term, services.board
        self._run = run
        self._runner = ItemRunner(services, run)
        training = services.term.cycle(run).training
        self._unscored: ArtifactId | None = None
        self._settings = None if training is None else RunSettings.parse(dict(training.settings))

    async def run(self) -> None:
        """Go on from what the ledger says; an error that won't mend ends the run."""
        await step_until_finished(self._term, self._board, self._run, self._step)

    @property
    def _state(self) -> CycleState:
        return self._term.cycle(self._run)

    async def _step(self) -> None:
        step, reason = next_run_step(self._view())
        log.info("next_step", extra={"run": self._run, "reason": reason})
        match step:
            case RunItems(Phase.EVALUATE):
                await self._validate(step)
            case RunItems():
                await self._run_item(step)
            case FreezeManifest(data):
                await self._term.record(self._manifest(data))
            case TrainRound():
                self._begin(Phase.TRAIN)
                await self._trainer().train(step)
            case CloseRun(model):
                await self._services.reach.keep_two_copies(model, self._term.self_id)
                if not self._state.ends_at(ROUND, model):
                    raise BranchChangedError("the run's model is no longer the end of its line")
                done = RoundCommitted(self._run, ROUND, model, "", "")
                cycles = self._term.state.cycles
                await self._term.record(done, *stopped_with(cycles, self._run, "it is trained"))

    def _view(self) -> RunView:
        state = self._state
        last = state.last_checkpoint(ROUND)
        requested = state.requested
        return RunView(
            source=None if requested is None else requested.source,
            tokenizer="" if requested is None else requested.tokenizer,
            is_training=state.training is not None,
            data=data_of(self._term.state, self._run),
            has_manifest=ROUND in state.manifests,
            final_checkpoint=last.artifact if last is not None and last.is_final else None,
            completed={fact.item: result_of(fact) for fact in state.completed.values()},
            unscored=self._unscored,
        )

    def _begin(self, phase: Phase) -> None:
        self._board.begin(self._run, ROUND, phase, now_s())

    async def _validate(self, step: RunItems) -> None:
        """Score the model, if that can be done: a run that is trained doesn't fail for it."""
        model = self._view().final_checkpoint
        try:
            await self._run_item(step)
        except JupiterError as error:
            if error.may_mend:
                raise
            log.warning("validation_failed", extra={"run": self._run, "reason": error.message})
            trouble = f"the model couldn't be validated: {error.message}"
            self._board.explain(self._run, trouble)
            self._unscored = model

    async def _run_item(self, step: RunItems) -> None:
        self._begin(step.phase)
        requested = self._state.requested
        is_bound = step.phase is Phase.PACK and requested is not None
        (item,) = step.items
        node = requested.node if is_bound and requested is not None else ""
        trained = self._view().final_checkpoint
        await self._term.record(
            await self._runner.run(ROUND, item, node, lambda: self._check_line(trained))
        )

    def _check_line(self, trained: str | None) -> None:
        """Raise BranchChangedError where another model than this one counts by now."""
        if self._view().final_checkpoint != trained:
            raise BranchChangedError("another line of the run counts by now")

    def _manifest(self, data: WorkResult) -> ManifestFrozen:
        """Return what is trained on.

        Raises:
            EmptySourceError: the data set isn't enough for one sequence.
        """
        if self._settings is None:
            raise Bug("a run that only prepares data has no training")
        tokens = int(data.counts["tokens"])
        return ManifestFrozen(
            cycle=self._run,
            round=ROUND,
            parent="",
            tokenizer=data.outputs["tokenizer"],
            shards=(data.outputs["shards"],),
            sequences=sequences_in(tokens, self._settings.seq_len),
            tokens=tokens,
        )

    def _trainer(self) -> GangSupervisor | IslandCoordinator:
        training = training_of(self._term.state, self._run)
        if training.settings.island_nodes:
            return IslandCoordinator(self._services, training)
        return GangSupervisor(
            self._services, TrainedRound(self._run, ROUND, training.shape, training.plan)
        )
