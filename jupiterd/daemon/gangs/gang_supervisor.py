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
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN, AttemptAdopted, AttemptOpened
from jupiterd.cluster.planning.engines import MLX, EngineChoice
from jupiterd.cluster.training.scale_policy import ScalePolicy
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_start
from jupiterd.daemon.executor import deferred_inputs
from jupiterd.daemon.gangs.adoption import Adopted, adopted
from jupiterd.daemon.gangs.attempt_end import FINISHED, AttemptEnd
from jupiterd.daemon.gangs.attempt_retries import AttemptRetries, root_cause
from jupiterd.daemon.gangs.checkpoint_commits import CheckpointCommits
from jupiterd.daemon.gangs.checkpoint_lineage import CheckpointLineage
from jupiterd.daemon.gangs.damaged_checkpoints import suspend_damaged
from jupiterd.daemon.gangs.gang_preflight import GangPreflight
from jupiterd.daemon.gangs.gang_progress import GangProgress
from jupiterd.daemon.gangs.gang_reachability import GangReachability
from jupiterd.daemon.gangs.gang_rescaling import RescalingPlan, allow_rescaling
from jupiterd.daemon.gangs.island_reseed import IslandReseed, reason_to_begin_anew
from jupiterd.daemon.gangs.late_joiners import LateJoiners
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.daemon.gangs.rank_follower import RankEvents, follow
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.recorded_predictions import with_prediction
from jupiterd.daemon.gangs.rendezvous import Rendezvous, RingListeners, meet_at_store, meet_in_ring
from jupiterd.daemon.gangs.scale_candidates import ScaleCandidates
from jupiterd.daemon.gangs.straggler_watch import StragglerWatch
from jupiterd.daemon.gangs.transition_timing import TransitionTiming
from jupiterd.daemon.gangs.watchdog_timer import AttemptWatch
from jupiterd.daemon.leader.checkpoint_alarm import CheckpointAlarm
from jupiterd.daemon.leader.checkpoint_parts import CheckpointParts
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.gang_partition import partition_of_gang
from jupiterd.daemon.planning.gang_plan import GangPlan, choose, left_out, plan_launch
from jupiterd.daemon.planning.rank_order import by_links
from jupiterd.daemon.planning.trained_round import TrainedRound
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

    def __init__(self, services: TrainingServices, trained_round: TrainedRound) -> None:
        self._services = services
        self._trained_round, self._cycle = trained_round, trained_round.cycle
        term, board, machines = services.term, services.board, services.machines
        reach, calls = services.reach, services.calls
        self._term, self._board = term, board
        parent = CycleId(trained_round.parent)
        self._island_reseed = (
            IslandReseed(term, board, reach, trained_round.cycle, parent) if parent else None
        )
        self._orders = RankOrders(term, machines, reach, calls, trained_round)
        self._lineage = CheckpointLineage(term, reach, trained_round.cycle, trained_round.round)
        self._alarm = CheckpointAlarm(board, machines, trained_round.cycle)
        self._progress = GangProgress(board, trained_round.cycle, self._orders)
        self._commits = CheckpointCommits()
        self._parts: CheckpointParts | None = None
        """Those of checkpoints, where each rank holds a part of the model."""
        self._micro_batch_sizes = MicroBatchSizes(trained_round.plan.micro_batch_sequences)
        self._preflight = GangPreflight(
            term, board, machines, calls, trained_round, self._micro_batch_sizes
        )
        self._transition_timing = TransitionTiming(now_s)
        self._ending = AttemptEnd(
            term, reach, calls, self._lineage, self._transition_timing, trained_round
        )
        self._reason_to_stop = FINISHED
        """The reason to record if all ranks exit by themselves: finished or rescaled."""
        self._scale_policy = ScalePolicy()
        self._late_joiners = LateJoiners(term, reach)
        self._stragglers = StragglerWatch(services, trained_round)
        self._name_of = machines.name_of
        self._reachability = GangReachability(
            machines, services.connectivity, self._scale_policy, self._name_of
        )
        self._watch = AttemptWatch(
            machines, self._reachability, self._late_joiners, trained_round, term.self_id
        )

    async def train(self, step: TrainRound) -> None:
        """Return when the round's final checkpoint is recorded, or its branch counts no more.

        Raises:
            JupiterError: a reason that another attempt can't mend.
        """
        try:
            await self._train_to_end(step)
        finally:
            self._stragglers.end()

    async def _train_to_end(self, step: TrainRound) -> None:
        retries = AttemptRetries()
        while not self._lineage.is_over():
            before, left_out = self._lineage.step(), self._scale_policy.left_out
            try:
                await self._train_on(step)
            except* JupiterError as group:
                if self._term.is_over:  # it was ending anyway, and may have lost our cancel
                    raise
                error, has_other_start = root_cause(group), await self._switch_start(group)
                may_mend = retries.failed(
                    error,
                    has_other_start=has_other_start,
                    has_advanced=self._lineage.step() > before,
                    is_regrouped=self._scale_policy.left_out > left_out,
                )
                if not (may_mend or self._lineage.is_over()):
                    raise error from group
                self._explain_retry(error.message, is_shown=not has_other_start)
                await retries.pause()

    async def _train_on(self, step: TrainRound) -> None:
        """See one attempt through: the one that another leader has left, or a new one."""
        if not await self._take_over_open_attempt():
            await self._run_attempt(step)
        if not self._lineage.is_over():
            self._alarm.check()

    def _explain_retry(self, why: str, *, is_shown: bool) -> None:
        """Show why another attempt follows; nothing where the round is trained."""
        if self._lineage.is_over():
            return
        log.warning("training_interrupted", extra={"reason": why})
        if is_shown:
            self._board.explain(self._cycle, f"{why}; trying again")

    async def _switch_start(self, group: BaseExceptionGroup[JupiterError]) -> bool:
        """Say whether the next attempt starts from another checkpoint: this one's was of no use."""
        if self._island_reseed and (reason := reason_to_begin_anew(all_of(group))):
            return await self._island_reseed.begin(self._lineage.start, reason)
        damage = next((e for e in all_of(group) if isinstance(e, CorruptCheckpointError)), None)
        if damage is None or not self._lineage.start:
            return False
        reach, start = self._services.reach, self._lineage.start
        await suspend_damaged(self._term, self._board, reach, self._cycle, start, damage.message)
        return True

    async def _take_over_open_attempt(self) -> bool:
        """Follow the gang that another leader has left to its end; False: there is none to adopt.

        Whatever else is open is ended: an older attempt, or one that we ourselves couldn't close.
        """
        left = self._term.cycle(self._cycle).open_attempts
        for opened in left[:-1]:
            await self._end(self._plan_of(opened), LEFT_OPEN)
        for opened in left[-1:]:
            gang_plan = self._plan_of(opened)
            self._transition_timing.begin(gang_plan.attempt)
            if opened.round != self._trained_round.round:
                await self._end(gang_plan, LEFT_OPEN)
                continue
            self._lineage.follow(gang_plan)
            if await self._adopt(gang_plan):
                return True
            await self._end(gang_plan, LEFT_OPEN, saves_last_step=True)
        return False

    async def _adopt(self, gang_plan: GangPlan) -> bool:
        """Follow a running gang to its end; say no where not all of it can be followed."""
        async with AsyncExitStack() as stack:
            following = adopted(
                self._services.machines, self._services.calls, self._orders.all(gang_plan)
            )
            try:
                gang = await stack.enter_async_context(following)
            except JupiterError as error:
                extra = {"attempt": gang_plan.attempt, "reason": error.message}
                log.warning("attempt_not_adopted", extra=extra)
                return False
            log.info("attempt_adopted", extra={"attempt": gang_plan.attempt})
            await self._term.record(AttemptAdopted(self._cycle, gang_plan.attempt))
            gang_plan = replace(gang_plan, began_s=now_s() - gang.running_s)
            await self._run_to_end(gang_plan, self._follow_adopted(gang, gang_plan))
        return True

    def _plan_of(self, opened: AttemptOpened) -> GangPlan:
        is_of_base = self._trained_round.plan.options.adapter is not None
        return GangPlan.of(opened, is_of_base=is_of_base)

    async def _run_attempt(self, step: TrainRound) -> None:
        self._micro_batch_sizes.take_up(
            self._term.cycle(self._cycle).attempts_opened, self._trained_round.round
        )
        gang_plan = await self._preflight.prepared_once_resumed(
            self._planned, self._lineage.is_over
        )
        if self._lineage.is_over():  # meanwhile
            return
        choice = gang_plan.choice
        log.info("engine_chosen", extra={"engine": choice.label, "reason": choice.reason})
        self._lineage.start = gang_plan.from_checkpoint
        inputs = await self._orders.inputs(step, gang_plan)  # without them nothing is recorded
        await whole_start(self._services.reach.artifact_cache, inputs)
        # An island's ranks wait for what others have learned; and no rank trains without its part.
        if not self._island_reseed and gang_plan.partition is None:
            gang_plan = await self._late_joiners.named(gang_plan)
        gang_plan = with_prediction(
            self._term, self._services.fleet_view, self._trained_round, gang_plan
        )
        await self._term.record(self._lineage.opened(gang_plan))
        self._transition_timing.mark("opened")
        self._lineage.follow(gang_plan)
        await self._run_to_end(gang_plan, self._run_gang(inputs, gang_plan))

    def _planned(self, without: AbstractSet[NodeId]) -> GangPlan:
        state, chosen = self._term.cycle(self._cycle), self._chosen(without)
        if self._stragglers.consider(chosen.engine, frozenset(chosen.gang)):
            chosen = self._chosen(without)
        for node, reason in left_out(self._services.placement, state).items():
            name = self._services.machines.name_of(node)
            log.warning("machine_left_out", extra={"node": name, "reason": reason})
        choice = by_links(self._services.connectivity, chosen)
        attempt = self._term.next_attempt(self._cycle)
        most = self._micro_batch_sizes.most(choice.gang)
        trained, machines = self._trained_round, self._services.machines
        return replace(
            plan_launch(state, trained.round, attempt, choice),
            partition=partition_of_gang(machines, state, trained, choice, most),
        )

    def _chosen(self, without: AbstractSet[NodeId]) -> EngineChoice:
        return choose(
            self._services.placement,
            self._term.cycle(self._cycle),
            max_ranks=self._trained_round.plan.batch_sequences,
            without=without,
            shunned=self._scale_policy.left_out | self._stragglers.let_go,
        )

    async def _run_to_end(self, gang_plan: GangPlan, work: Awaitable[None]) -> None:
        """Wait for an attempt's end, and say how it ended; a later leader sees to it after us."""
        reason, code, saves_last_step = "it was stopped", "", True
        self._reason_to_stop = FINISHED
        try:
            await work
            reason, saves_last_step = self._reason_to_stop, False
            self._transition_timing.mark("stopped")
        except* JupiterError as group:
            self._transition_timing.begin(gang_plan.attempt)
            reason, code = root_cause(group).message, root_cause(group).code
            log.warning("attempt_ended", extra={"attempt": gang_plan.attempt, "reason": reason})
            raise
        finally:
            if not self._term.is_over:
                await asyncio.shield(
                    self._end(gang_plan, reason, code, saves_last_step=saves_last_step)
                )

    async def _end(
        self, gang_plan: GangPlan, reason: str, code: str = "", *, saves_last_step: bool = False
    ) -> None:
        if self._island_reseed:
            self._services.pseudo_gradients.set_training(self._cycle, is_training=False)
        commits, self._commits = self._commits, CheckpointCommits()
        parts, self._parts = self._parts, None
        silent = frozenset(self._watch.silent)
        await self._ending.end(
            gang_plan,
            reason,
            code,
            saves_last_step=saves_last_step,
            unrecorded=partial(_unrecorded, commits, parts),
            silent=silent,
        )

    async def _run_gang(self, inputs: Mapping[str, ArtifactId], gang_plan: GangPlan) -> None:
        async with self._watch.over(gang_plan):
            await self._orders.spread(inputs, gang_plan)
            self._progress.begin(gang_plan)
            self._progress.explain("")
            self._transition_timing.mark("spread")
            await self._form_gang(inputs, gang_plan)

    async def _form_gang(self, inputs: Mapping[str, ArtifactId], gang_plan: GangPlan) -> None:
        listeners = RingListeners()
        async with self._committing(gang_plan):
            events = self._rank_events(gang_plan, listeners)
            meeting = await self._meeting(gang_plan)
            self._transition_timing.mark("meeting")
            async with (
                self._rescaling(gang_plan, deferred_inputs.at_once(inputs)),
                asyncio.TaskGroup() as group,
            ):
                for rank, node in enumerate(gang_plan.gang):
                    params = self._orders.params(gang_plan, meeting, rank)
                    order = replace(
                        self._orders.rank(gang_plan, rank), params=params, inputs=inputs
                    )
                    work = self._services.calls.run(node, order)
                    if gang_plan.is_ring and rank == len(gang_plan.gang) - 1:
                        await listeners.wait_for(rank)
                    group.create_task(self._follow(rank, node, work, events))

    @asynccontextmanager
    async def _committing(self, gang_plan: GangPlan) -> AsyncGenerator[None]:
        """Record checkpoints while ranks are followed, and all of them before the attempt ends."""
        self._commits = CheckpointCommits()
        recording = self._commits.committing(
            lambda node, stored: self._try_to_commit(node, stored, gang_plan)
        )
        self._parts = None
        if not gang_plan.cuts_state:
            async with recording:
                yield
            return
        reach, ranks = self._services.reach, len(gang_plan.gang)
        recorded = partial(self._lineage.recorded_step, gang_plan.attempt)
        self._parts = CheckpointParts(reach, self._term.self_id, ranks, self._alarm.ring, recorded)
        async with recording, self._parts.assembling(self._commits.add):
            yield

    def _rescaling(
        self, gang_plan: GangPlan, inputs: Iterable[ArtifactId]
    ) -> AbstractAsyncContextManager[None]:
        """Let who joins or leaves end the attempt after a step, so that the next is formed anew."""

        def stops(reason: str) -> None:
            self._reason_to_stop = reason
            log.info("gang_changes", extra={"attempt": gang_plan.attempt, "reason": reason})
            self._transition_timing.begin(gang_plan.attempt)

        def goes_on() -> None:
            self._reason_to_stop = FINISHED

        services = self._services
        members = ScaleCandidates(
            services,
            self._trained_round,
            self._preflight,
            gang_plan,
            self._stragglers,
        )
        self._stragglers.begin(gang_plan)
        self._scale_policy.begin(frozenset(gang_plan.gang), now_s())
        plan = RescalingPlan(
            self._cycle,
            members.eligible,
            members.drained,
            self._stragglers.leaving,
            partial(members.bring, inputs=inputs),
            self._name_of,
            stops,
            goes_on,
            self._commits.hold,
        )
        return allow_rescaling(services.term, services.calls, gang_plan, self._reachability, plan)

    async def _follow_adopted(self, gang: Adopted, gang_plan: GangPlan) -> None:
        self._progress.begin(gang_plan)
        self._progress.explain("")
        async with (
            self._committing(gang_plan),
            self._watch.over(gang_plan),
            self._rescaling(gang_plan, ()),
            asyncio.TaskGroup() as group,
        ):
            events = self._rank_events(gang_plan, RingListeners())
            for rank, node in enumerate(gang_plan.gang):
                group.create_task(self._follow(rank, node, gang.works[rank], events))

    async def _meeting(self, gang_plan: GangPlan) -> Rendezvous:
        prove = self._reachability.prove_routes
        if gang_plan.choice.engine == MLX:
            return await meet_in_ring(self._services.connectivity, gang_plan.gang, prove)
        store = self._orders.store(gang_plan)
        return await meet_at_store(self._services.connectivity, gang_plan.gang, store, prove)

    def _rank_events(self, gang_plan: GangPlan, listeners: RingListeners) -> RankEvents:
        """Return what takes in the events of an attempt that is watched and committed by now."""
        return RankEvents(
            gang_plan=gang_plan,
            cycle=self._cycle,
            watchdog=self._watch.watchdog,
            progress=self._progress,
            stragglers=self._stragglers,
            commits=self._commits,
            parts=self._parts,
            alarm=self._alarm,
            transition_timing=self._transition_timing,
            listeners=listeners,
            pseudo_gradients=self._services.pseudo_gradients,
            reseed=self._island_reseed,
        )

    async def _follow(
        self, rank: int, node: NodeId, work: AsyncGenerator[WorkEvent], events: RankEvents
    ) -> None:
        """Follow one rank to its end, and learn from its error what the next attempt changes."""
        try:
            await follow(rank, node, work, events)
        except StateNotFetchedError:
            self._late_joiners.were_too_slow({node})
            raise
        except OutOfMemoryError:
            sizes = events.gang_plan.micro_batches
            size = self._micro_batch_sizes.halve(
                node, self._name_of(node), sizes[rank] if sizes else None
            )
            log.warning("micro_batch_halved", extra={"rank": rank, "sequences_at_a_time": size})
            raise

    async def _try_to_commit(
        self, node: NodeId, stored: CheckpointStored, gang_plan: GangPlan
    ) -> None:
        """Record a checkpoint; where no disk has room, training goes on to the next one."""
        try:
            await self._lineage.commit(node, stored, gang_plan, self._trained_round.plan)
        except DiskFullError as error:
            self._alarm.ring(stored.progress.step, error.message)
        else:
            self._alarm.over()


async def _unrecorded(
    commits: CheckpointCommits, parts: CheckpointParts | None
) -> list[tuple[NodeId, CheckpointStored]]:
    """Return what an attempt has left, with a checkpoint of the parts that its ranks have left."""
    return [*commits.unrecorded, *([] if parts is None else await parts.rest())]
