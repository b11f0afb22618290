"""Training a round: one attempt of a gang after another until the last checkpoint is recorded.

Owns who is in an attempt, its launch, and how it ends. Doesn't know how a rank trains (workers),
what its events mean (`rank_follower`), or how processes are supervised. An attempt that loses a
rank is ended everywhere, and the last step that any of its survivors has finished is recorded as a
checkpoint; the next starts there on the nodes that are fit. An attempt only extends the branch that
it started from. If another branch became the canonical one meanwhile, the attempt's checkpoints are
recorded as a leaf, and training stops. A new leader adopts an attempt that only lost its leader.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN, AttemptAdopted
from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.training.elasticity import Elasticity
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_start
from jupiterd.daemon.executor import deferred_inputs
from jupiterd.daemon.gangs.adoption import Adopted, adopted
from jupiterd.daemon.gangs.attempt_end import FINISHED, AttemptEnd
from jupiterd.daemon.gangs.attempt_retries import AttemptRetries, root_cause
from jupiterd.daemon.gangs.checkpoint_commits import CheckpointCommits
from jupiterd.daemon.gangs.checkpoint_lineage import CheckpointLineage
from jupiterd.daemon.gangs.damaged_checkpoints import set_aside
from jupiterd.daemon.gangs.elasticity import GangChanges, changing
from jupiterd.daemon.gangs.gang_preflight import GangPreflight
from jupiterd.daemon.gangs.gang_progress import GangProgress
from jupiterd.daemon.gangs.gang_reachability import GangReachability
from jupiterd.daemon.gangs.island_reseed import IslandReseed, reason_to_begin_anew
from jupiterd.daemon.gangs.late_joiners import LateJoiners
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.daemon.gangs.rank_follower import RankEvents, follow
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.recorded_predictions import launch_with_prediction
from jupiterd.daemon.gangs.rendezvous import Rendezvous, RingListeners, meet_at_store, meet_in_ring
from jupiterd.daemon.gangs.scale_candidates import ScaleCandidates
from jupiterd.daemon.gangs.trained_round import TrainedRound
from jupiterd.daemon.gangs.transition_timing import TransitionTiming
from jupiterd.daemon.gangs.watchdog_timer import AttemptWatch
from jupiterd.daemon.leader.checkpoint_alarm import CheckpointAlarm
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.gang_plan import GangPlan, choose, plan_launch
from jupiterd.daemon.planning.rank_order import by_links
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
    WorkEvent,
)
from jupiterd.error_groups import all_of
from jupiterd.errors import (
    CorruptCheckpointError,
    DiskFullError,
    JupiterError,
    OutOfMemoryError,
    StateNotFetchedError,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId

log = logging.getLogger(__name__)


class GangSupervisor:
    """Supervises the training of one round for one term."""

    def __init__(self, services: TrainingServices, of: TrainedRound) -> None:
        self._services = services
        self._of, self._cycle = of, of.cycle
        term, board, machines = services.term, services.board, services.machines
        reach, calls = services.reach, services.calls
        self._term, self._board = term, board
        parent = CycleId(of.parent)
        self._anew = IslandReseed(term, board, reach, of.cycle, parent) if parent else None
        self._orders = RankOrders(term, machines, reach, calls, of)
        self._line = CheckpointLineage(term, reach, of.cycle, of.round)
        self._alarm = CheckpointAlarm(board, machines, of.cycle)
        self._shown = GangProgress(board, of.cycle, self._orders)
        self._commits = CheckpointCommits()
        self._memory = MicroBatchSizes(of.plan.micro_batch_sequences)
        self._preparation = GangPreflight(term, board, machines, calls, of, self._memory)
        self._change = TransitionTiming(now_s)
        self._ending = AttemptEnd(term, reach, calls, self._line, self._change, of)
        self._reason = FINISHED
        """The reason to record if all ranks exit by themselves: finished or rescaled."""
        self._growth = Elasticity()
        self._late = LateJoiners(term, reach)
        self._name = machines.name_of
        self._reach = GangReachability(machines, services.connectivity, self._growth, self._name)
        self._watch = AttemptWatch(machines, self._reach, self._late, of, term.self_id)

    async def train(self, step: TrainRound) -> None:
        """Return when the round's final checkpoint is recorded, or its line counts no more.

        Raises:
            JupiterError: a reason that another attempt can't mend.
        """
        retries = AttemptRetries()
        while not self._line.is_over():
            before, left_out = self._line.step(), self._growth.left_out
            try:
                await self._train_on(step)
            except* JupiterError as group:
                if self._term.is_over:  # it was ending anyway, and may have lost our cancel
                    raise
                error, is_set_aside = root_cause(group), await self._set_aside(group)
                may_mend = retries.failed(
                    error,
                    is_set_aside=is_set_aside,
                    has_advanced=self._line.step() > before,
                    is_regrouped=self._growth.left_out > left_out,
                )
                if not (may_mend or self._line.is_over()):
                    raise error from group
                self._explain_retry(error.message, is_shown=not is_set_aside)
                await retries.pause()

    async def _train_on(self, step: TrainRound) -> None:
        """See one attempt through: the one that another leader has left, or a new one."""
        if not await self._go_on():
            await self._run_attempt(step)
        if not self._line.is_over():
            self._alarm.check()

    def _explain_retry(self, why: str, *, is_shown: bool) -> None:
        """Show why another attempt follows; nothing where the round is trained."""
        if self._line.is_over():
            return
        log.warning("training_interrupted", extra={"reason": why})
        if is_shown:
            self._board.explain(self._cycle, f"{why}; trying again")

    async def _set_aside(self, group: BaseExceptionGroup[JupiterError]) -> bool:
        """Let the next attempt start from another checkpoint where this one's is of no use."""
        if self._anew and (reason := reason_to_begin_anew(all_of(group))):
            return await self._anew.begin(self._line.start, reason)
        damage = next((e for e in all_of(group) if isinstance(e, CorruptCheckpointError)), None)
        if damage is None or not self._line.start:
            return False
        reach, start = self._services.reach, self._line.start
        await set_aside(self._term, self._board, reach, self._cycle, start, damage.message)
        return True

    async def _go_on(self) -> bool:
        """See the gang through that another leader has left; say no where there is none to save.

        Whatever else is open is ended: an older attempt, or one that we ourselves couldn't close.
        """
        left = self._term.cycle(self._cycle).open_attempts
        for opened in left[:-1]:
            await self._end(GangPlan.of(opened), LEFT_OPEN)
        for opened in left[-1:]:
            launch = GangPlan.of(opened)
            self._change.begin(launch.attempt)
            if opened.round != self._of.round:
                await self._end(launch, LEFT_OPEN)
                continue
            self._line.follow(launch)
            if await self._adopt(launch):
                return True
            await self._end(launch, LEFT_OPEN, keeps=True)
        return False

    async def _adopt(self, launch: GangPlan) -> bool:
        """Follow a running gang to its end; say no where not all of it can be followed."""
        async with AsyncExitStack() as stack:
            following = adopted(
                self._services.machines, self._services.calls, self._orders.all(launch)
            )
            try:
                gang = await stack.enter_async_context(following)
            except JupiterError as error:
                extra = {"attempt": launch.attempt, "reason": error.message}
                log.warning("attempt_not_adopted", extra=extra)
                return False
            log.info("attempt_adopted", extra={"attempt": launch.attempt})
            await self._term.record(AttemptAdopted(self._cycle, launch.attempt))
            launch = replace(launch, began_s=now_s() - gang.running_s)
            await self._see_through(launch, self._follow_adopted(gang, launch))
        return True

    async def _run_attempt(self, step: TrainRound) -> None:
        self._memory.take_up(self._term.cycle(self._cycle).attempts_opened, self._of.round)
        launch = await self._preparation.prepared_once_resumed(self._planned, self._line.is_over)
        if self._line.is_over():  # meanwhile
            return
        choice = launch.choice
        log.info("engine_chosen", extra={"engine": choice.label, "reason": choice.reason})
        self._line.start = launch.from_checkpoint
        inputs = await self._orders.inputs(step, launch)  # without them nothing is recorded
        await whole_start(self._services.reach.artifact_cache, inputs)
        if not self._anew:  # its ranks all wait for what the others have learned
            launch = await self._late.named(launch)
        launch = launch_with_prediction(self._term, self._services.fleet_view, self._of, launch)
        await self._term.record(self._line.opened(launch))
        self._change.mark("opened")
        self._line.follow(launch)
        await self._see_through(launch, self._run_gang(inputs, launch))

    def _planned(self, without: AbstractSet[NodeId]) -> GangPlan:
        ranks = self._of.plan.batch_sequences
        state, shunned = self._term.cycle(self._cycle), self._growth.left_out
        placement = self._services.placement
        chosen = choose(placement, state, max_ranks=ranks, without=without, shunned=shunned)
        choice = by_links(self._services.connectivity, chosen)
        return plan_launch(state, self._of.round, self._term.next_attempt(self._cycle), choice)

    async def _see_through(self, launch: GangPlan, work: Awaitable[None]) -> None:
        """Wait for an attempt's end, and say how it ended; a later leader sees to it after us."""
        reason, code, keeps = "it was stopped", "", True
        self._reason = FINISHED
        try:
            await work
            reason, keeps = self._reason, False
            self._change.mark("stopped")
        except* JupiterError as group:
            self._change.begin(launch.attempt)
            reason, code = root_cause(group).message, root_cause(group).code
            log.warning("attempt_ended", extra={"attempt": launch.attempt, "reason": reason})
            raise
        finally:
            if not self._term.is_over:
                await asyncio.shield(self._end(launch, reason, code, keeps=keeps))

    async def _end(
        self, launch: GangPlan, reason: str, code: str = "", *, keeps: bool = False
    ) -> None:
        if self._anew:
            self._services.pseudo_gradients.set_training(self._cycle, is_training=False)
        commits, self._commits = self._commits, CheckpointCommits()
        unrecorded, silent = commits.unrecorded, frozenset(self._watch.silent)
        await self._ending.end(
            launch, reason, code, keeps=keeps, unrecorded=unrecorded, silent=silent
        )

    async def _run_gang(self, inputs: Mapping[str, ArtifactId], launch: GangPlan) -> None:
        async with self._watch.over(launch):
            await self._orders.spread(inputs, launch)
            self._shown.begin(launch)
            self._shown.explain("")
            self._change.mark("spread")
            await self._form_gang(inputs, launch)

    async def _form_gang(self, inputs: Mapping[str, ArtifactId], launch: GangPlan) -> None:
        listeners = RingListeners()
        async with self._committing(launch):
            events = self._rank_events(launch, listeners)
            meeting = await self._meeting(launch)
            self._change.mark("meeting")
            async with (
                self._changing(launch, deferred_inputs.at_once(inputs)),
                asyncio.TaskGroup() as group,
            ):
                for rank, node in enumerate(launch.gang):
                    params = self._orders.params(launch, meeting, rank)
                    order = replace(self._orders.rank(launch, rank), params=params, inputs=inputs)
                    work = self._services.calls.run(node, order)
                    if launch.is_ring and rank == len(launch.gang) - 1:
                        await listeners.wait_for(rank)
                    group.create_task(self._follow(rank, node, work, events))

    def _committing(self, launch: GangPlan) -> AbstractAsyncContextManager[None]:
        """Record checkpoints while ranks are followed, and all of them before the attempt ends."""
        self._commits = CheckpointCommits()
        return self._commits.committing(
            lambda node, stored: self._try_to_commit(node, stored, launch)
        )

    def _changing(
        self, launch: GangPlan, inputs: Iterable[ArtifactId]
    ) -> AbstractAsyncContextManager[None]:
        """Let who joins or leaves end the attempt after a step, so that the next is formed anew."""

        def stops(reason: str) -> None:
            self._reason = reason
            log.info("gang_changes", extra={"attempt": launch.attempt, "reason": reason})
            self._change.begin(launch.attempt)

        def goes_on() -> None:
            self._reason = FINISHED

        services = self._services
        members = ScaleCandidates(
            services.term, services.placement, services.reach, self._of, self._preparation, launch
        )
        self._growth.begin(frozenset(launch.gang), now_s())
        plan = GangChanges(
            self._cycle,
            members.eligible,
            members.drained,
            partial(members.bring, inputs=inputs),
            self._name,
            stops,
            goes_on,
            self._commits.hold,
        )
        return changing(services.term, services.calls, launch, self._reach, plan)

    async def _follow_adopted(self, gang: Adopted, launch: GangPlan) -> None:
        self._shown.begin(launch)
        self._shown.explain("")
        async with (
            self._committing(launch),
            self._watch.over(launch),
            self._changing(launch, ()),
            asyncio.TaskGroup() as group,
        ):
            events = self._rank_events(launch, RingListeners())
            for rank, node in enumerate(launch.gang):
                group.create_task(self._follow(rank, node, gang.works[rank], events))

    async def _meeting(self, launch: GangPlan) -> Rendezvous:
        prove = self._reach.prove_routes
        if launch.choice.engine == MLX:
            return await meet_in_ring(self._services.connectivity, launch.gang, prove)
        store = self._orders.store(launch)
        return await meet_at_store(self._services.connectivity, launch.gang, store, prove)

    def _rank_events(self, launch: GangPlan, listeners: RingListeners) -> RankEvents:
        """Return what takes in the events of an attempt that is watched and committed by now."""
        return RankEvents(
            launch=launch,
            cycle=self._cycle,
            watchdog=self._watch.watchdog,
            shown=self._shown,
            commits=self._commits,
            alarm=self._alarm,
            change=self._change,
            listeners=listeners,
            pseudo_gradients=self._services.pseudo_gradients,
            reseed=self._anew,
        )

    async def _follow(
        self, rank: int, node: NodeId, work: AsyncGenerator[WorkEvent], events: RankEvents
    ) -> None:
        """Follow one rank to its end, and learn from its error what the next attempt changes."""
        try:
            await follow(rank, node, work, events)
        except StateNotFetchedError:
            self._late.were_too_slow({node})
            raise
        except OutOfMemoryError:
            sizes = events.launch.micro_batches
            size = self._memory.halve(node, self._name(node), sizes[rank] if sizes else None)
            log.warning("micro_batch_halved", extra={"rank": rank, "sequences_at_a_time": size})
            raise

    async def _try_to_commit(
        self, node: NodeId, stored: CheckpointStored, launch: GangPlan
    ) -> None:
        """Record a checkpoint; where no disk has room, training goes on to the next one."""
        try:
            await self._line.commit(node, stored, launch, self._of.plan)
        except DiskFullError as error:
            self._alarm.ring(stored.progress.step, error.message)
        else:
            self._alarm.over()
