"""The leader's walk of one cycle: asks `phases` what is next, has it done, records what came of it.

Owns one running cycle for one term. Doesn't know how items are done (workers) or how gangs hold
(`gang_supervisor`).
"""

import asyncio
import logging
from dataclasses import replace

from jupiterd.cluster.facts.facts import (
    ManifestFrozen,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.facts.phase_facts import PhaseRedone
from jupiterd.cluster.ledger.island_runs import stopped_with
from jupiterd.cluster.ledger.progress_tree import weights_of
from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.domain.changed_settings import with_changes
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.domain.generator import generator_from
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.cycle.phases.boundary import boundary
from jupiterd.cycle.phases.evaluate import generator_in_force
from jupiterd.cycle.phases.generate import ahead
from jupiterd.cycle.phases.judge import ASKING
from jupiterd.cycle.phases.source_reading import READING
from jupiterd.cycle.phases.steps import CloseRound, RunItems, Step, TrainRound
from jupiterd.cycle.phases.table import next_step
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.runs.recorded_settings import base_of, loss_on, questions_of
from jupiterd.cycle.training.plan import parse_model
from jupiterd.daemon.catalog.gate_history import best_student, looks_before
from jupiterd.daemon.catalog.pause_facts import is_interactive, paused_now, waiting_after
from jupiterd.daemon.catalog.round_history import active_generators_of
from jupiterd.daemon.cycles.collect_phase import CollectPhase, lost_in
from jupiterd.daemon.cycles.generate_phase import GeneratePhase
from jupiterd.daemon.cycles.judge_phase import hear_judge
from jupiterd.daemon.cycles.speculation_discard import anew, writes_otherwise
from jupiterd.daemon.cycles.speculative_generation import generating_ahead
from jupiterd.daemon.cycles.train_phase import ranks_here, trainer_of_round
from jupiterd.daemon.leader.bounded_concurrency import run_spread, training_places
from jupiterd.daemon.leader.skipped_item import done_without
from jupiterd.daemon.leader.step_loop import step_until_finished
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.leader.work_item import GENERATING, TRAINING_ALONE, ItemRunner
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import (
    BranchChangedError,
    Bug,
    EmptySourceError,
    OutOfMemoryError,
)
from jupiterd.ids import CycleId

log = logging.getLogger(__name__)

SPREAD = frozenset({GENERATING, TRAINING_ALONE})
"""Tasks that have a node to themselves."""


class CycleDriver:
    """Conducts one cycle until it is finished or the term is over."""

    def __init__(self, services: TrainingServices, cycle: CycleId) -> None:
        self._services = services
        self._term, self._board = services.term, services.board
        self._cycle = cycle
        started = services.term.cycle(cycle).started
        if started is None:
            raise Bug(f"cycle {cycle} was never started")
        self._started = started
        self._as_told = parse_domain(started.domain_yaml, f"{started.domain}.yaml")
        self._domain = self._as_told
        overrides = self._domain.training.overrides()
        self._shape = parse_model(started.model_yaml, overrides)
        self._runner = ItemRunner(services, cycle)

    async def run(self) -> None:
        """Go on from what the ledger says; an error that won't mend ends the cycle."""
        await step_until_finished(self._term, self._board, self._cycle, self._step)

    async def _step(self) -> None:
        view = self._view()
        step, reason = next_step(view, self._domain, self._shape)
        log.info("next_step", extra={"round": view.round, "reason": reason})
        if await self._waits_before(view, step):
            return
        match step:
            case RunItems(Phase.COLLECT) if all(each.task == READING for each in step.items):
                self._begin(view, step.phase)
                collecting = CollectPhase(
                    self._term,
                    self._board,
                    self._runner,
                    self._domain,
                    self._view,
                )
                await collecting.run(step.items, lambda: self._check_line(view))
            case RunItems(Phase.GENERATE):
                self._begin(view, step.phase)
                generating = GeneratePhase(
                    self._term,
                    self._board,
                    self._services.placement,
                    self._runner,
                    view,
                )
                await generating.run(step.items, lambda: self._check_line(view))
            case RunItems():
                await self._run_items(view, step)
            case TrainRound():
                self._begin(view, Phase.TRAIN)
                trainer = await trainer_of_round(self._services, self._cycle, view.round)
                async with generating_ahead(
                    self._term,
                    self._board,
                    self._services.placement,
                    self._runner,
                    view,
                    self._ahead(view),
                ):
                    await trainer.train(step)
            case CloseRound(verdict):
                await self._close(view, verdict)

    async def _waits_before(self, view: RoundView, step: Step) -> bool:
        """Pause where people want to be asked between the phases, and haven't answered yet."""
        cycle = self._term.cycle(self._cycle)
        place = boundary(view, step) if is_interactive(cycle, self._started) else None
        if place is None or cycle.steering.is_approved(*place):
            return False
        node = self._term.self_id
        await self._term.record(paused_now(cycle, self._cycle, waiting_after(place), node))
        return True

    def _ahead(self, view: RoundView) -> tuple[WorkItem, ...]:
        """Return what is written for the next round by now: nothing that people may change."""
        if is_interactive(self._term.cycle(self._cycle), self._started):
            return ()
        return ahead(view, self._domain)

    def _domain_of(self, round_number: int) -> Domain:
        """Return the domain with what people have changed for this round."""
        changes = self._term.cycle(self._cycle).steering.settings(round_number)
        return with_changes(self._as_told, changes)

    def _view(self) -> RoundView:
        cycle = self._term.cycle(self._cycle)
        number = cycle.rounds_committed + 1
        self._domain = self._domain_of(number)
        last = cycle.last_checkpoint(number)
        return RoundView(
            cycle=self._cycle,
            round=number,
            seed=self._started.seed,
            started_at=self._started.started_at,
            completed={
                fact.item: WorkResult(fact.outputs, fact.counts, fact.summary)
                for fact in cycle.completed.values()
            },
            candidate=last.artifact if last is not None and last.is_final else None,
            rounds=cycle.rounds_wanted,
            active_generators=active_generators_of(cycle, self._domain),
            looks=looks_before(cycle, number, "" if last is None else last.artifact),
            generation_redos=cycle.steering.redos(str(Phase.GENERATE)),
            best_student=best_student(cycle),
            purged=self._term.purged(self._started),
            named_generator=generator_from(self._started.generator),
            first_model=str(self._started.settings.get("start_from", "")),
            base=base_of(self._started.settings),
            loss_on=loss_on(self._started.settings),
            judge=generator_from(self._started.judge),
            questions=questions_of(self._started.settings),
            without_verdict=self._started.without_verdict,
        )

    def _begin(self, view: RoundView, phase: Phase) -> None:
        self._board.begin(self._cycle, view.round, phase, now_s())

    async def _run_items(self, view: RoundView, step: RunItems) -> None:
        self._begin(view, step.phase)
        by_task = {task: [i for i in step.items if i.task == task] for task in SPREAD}
        generating = GeneratePhase(
            self._term, self._board, self._services.placement, self._runner, view
        )
        async with asyncio.TaskGroup() as group:
            for item in (each for each in step.items if each.task not in SPREAD):
                group.create_task(self._run_item(view, item), name=item.id)
            if written := by_task[GENERATING]:
                group.create_task(generating.run(written, lambda: self._check_line(view)))
            if trained := by_task[TRAINING_ALONE]:
                group.create_task(
                    run_spread(
                        trained,
                        lambda _: training_places(self._services.placement),
                        lambda item: self._run_item(view, item),
                    )
                )

    async def _run_item(self, view: RoundView, item: WorkItem) -> None:
        done = await self._run_with_what_there_is(view, item)
        result = WorkResult(done.outputs, done.counts, done.summary)
        await self._term.record(done, *self._manifest(view, item, result))

    async def _run_with_what_there_is(self, view: RoundView, item: WorkItem) -> WorkCompleted:
        """Do an item; where it has too little text, say which sources it lacks."""
        try:
            if item.task == ASKING:
                return await hear_judge(self._term, self._board, self._runner, view, item)
            return await self._runner.run(view.round, item, check=lambda: self._check_line(view))
        except EmptySourceError as error:
            lost = lost_in(view)
            if not lost:
                raise
            failures = "; ".join(each.failure for each in lost)
            raise EmptySourceError(f"{error.message}; {failures}", error.hint) from error
        except OutOfMemoryError as error:
            if item.task != TRAINING_ALONE:
                raise
            # The gate goes on without this small student, and says so.
            log.warning("student_too_large", extra={"item": item.id, "reason": error.message})
            return done_without(self._term, self._board, view, item, error)

    def _check_line(self, view: RoundView) -> None:
        """Raise BranchChangedError where another line counts by now: its work is another."""
        now = self._view()
        if (now.round, now.candidate) != (view.round, view.candidate):
            raise BranchChangedError(f"another line than that of round {view.round} counts by now")

    def _manifest(
        self, view: RoundView, item: WorkItem, result: WorkResult
    ) -> tuple[ManifestFrozen, ...]:
        if item.phase is not Phase.PACK:
            return ()
        line = self._term.cycle(self._cycle).canonical_branch()
        first_pack = view.completed.get(item_id(1, Phase.PACK, 0), result)
        return (
            ManifestFrozen(
                cycle=self._cycle,
                round=view.round,
                parent=weights_of(line[-1]) if line else "",
                tokenizer=first_pack.outputs["tokenizer"],
                shards=(result.outputs["shards"],),
                sequences=int(result.counts["sequences"]),
                tokens=int(result.counts["tokens"]),
                redo=self._term.cycle(self._cycle).steering.redo_of(view.round, item.phase),
                ranks=ranks_here(self._term, self._services.placement, self._cycle),
            ),
        )

    async def _close(self, view: RoundView, judged: WorkResult) -> None:
        candidate = view.candidate
        if candidate is None:
            raise Bug("a round is closed before it is trained")
        verdict = str(judged.summary["verdict"])
        await self._services.reach.keep_two_copies(candidate, self._term.self_id)
        if not self._term.cycle(self._cycle).ends_at(view.round, candidate):
            raise BranchChangedError(
                f"round {view.round} is no longer the end of the line that counts"
            )
        cycles = self._term.state.cycles
        over = RoundCommitted(self._cycle, view.round, candidate, verdict, "")
        cycle = cycles[self._cycle]
        after = active_generators_of(cycle, self._domain, [*cycle.rounds, over])
        await self._term.record(
            VerdictReached(
                cycle=self._cycle,
                round=view.round,
                verdict=verdict,
                reason=str(judged.summary["reason"]),
                val_bpb=float(judged.summary["val_bpb"] or 0.0),
                artifact=judged.outputs["verdict"],
                candidate=candidate,
                generator_in_force=generator_in_force(view, self._domain),
            ),
            replace(over, newest_generator=after.newest),
            *self._unwritten(view, after),
            *stopped_with(cycles, self._cycle, f"round {view.round} is over"),
        )

    def _unwritten(self, view: RoundView, after: ActiveGenerators) -> list[PhaseRedone]:
        """Return that what was written ahead counts no more, where somebody else is to write."""
        kinds = self._domain.generation.kinds
        if not writes_otherwise(kinds, view.active_generators, after, view.named_generator):
            return []
        return anew(self._term.cycle(self._cycle), self._cycle, view.round + 1)
