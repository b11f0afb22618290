"""Training a round: one attempt of a gang after another until the last checkpoint is recorded.

Owns who is in an attempt, its launch, and what its events mean for the ledger. Doesn't know how a
rank trains (workers) or how processes are held (`gang`). An attempt that loses a rank is ended
everywhere, and the last step that any of its survivors has finished is recorded as a checkpoint;
the next starts there with whoever is fit. An attempt extends the line that it started from and no
other: where another one counts by now, what it has made is kept as a leaf, and it ends. One that
has only lost its leader is adopted.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN, AttemptAdopted
from jupiterd.cluster.planning.backends import NCCL
from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.training.elasticity import Elasticity
from jupiterd.cluster.training.gang_watchdog import GangWatchdog, Silent
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.daemon.artifacts.checkpoint_integrity import whole_start
from jupiterd.daemon.executor import deferred_inputs
from jupiterd.daemon.gangs.adoption import Adopted, adopted
from jupiterd.daemon.gangs.attempt_end import FINISHED, AttemptEnd
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
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.gangs.recorded_predictions import launch_foretold
from jupiterd.daemon.gangs.rendezvous import Rendezvous, meet_at_store, meet_in_ring
from jupiterd.daemon.gangs.root_cause import deepest
from jupiterd.daemon.gangs.scale_candidates import ScaleCandidates
from jupiterd.daemon.gangs.surviving_states import wish_for
from jupiterd.daemon.gangs.trained_round import TrainedRound
from jupiterd.daemon.gangs.transition_timing import TransitionTiming
from jupiterd.daemon.gangs.watchdog_timer import Verdict, as_error, watching
from jupiterd.daemon.leader.checkpoint_alarm import CheckpointAlarm
from jupiterd.daemon.leader.pseudo_gradients import ReportedPseudoGradient
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.gang_plan import GangPlan, choose, plan_launch
from jupiterd.daemon.planning.rank_order import by_links
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    BEGINS,
    BUSY,
    CheckpointStored,
    PseudoGradientStored,
    Started,
    WorkEvent,
)
from jupiterd.error_groups import all_of
from jupiterd.errors import (
    CorruptCheckpointError,
    DiskFullError,
    JupiterError,
    NcclFailedError,
    OutOfMemoryError,
    PeerUnreachableError,
    StateNotFetchedError,
    TimedOutError,
    WorkerCrashedError,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.protocol.frames import CheckpointUnsaved, GangJoined, Progressed, RankListening

log = logging.getLogger(__name__)

MAX_BARREN_EPOCHS = 5
"""Attempts in a row that add no checkpoint; more means that training can't go on by itself."""

RETRY_S = 1.0
MAX_RETRY_S = 30.0

RING_TIMEOUT_S = 35.0
"""How long an MLX ring may take to form: its ranks dial for 31 s, and one may listen for ever."""

LISTEN_TIMEOUT_S = 20.0
"""How long the last rank of a ring waits for the others: a cold start imports for seconds."""


class GangSupervisor:
    """Conducts the training of one round for one term."""

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
        """Why the running attempt ends when its ranks have come to an end by themselves."""
        self._growth = Elasticity()
        self._late = LateJoiners(term, reach)
        self._name = machines.name_of
        self._reach = GangReachability(machines, services.connectivity, self._growth, self._name)
        self._listening = asyncio.Semaphore(0)
        self._watch = GangWatchdog(0, 0.0)
        self._silent: set[NodeId] = set()
        """Whose members weren't heard when the attempt's end was due."""

    async def train(self, step: TrainRound) -> None:
        """Return when the round's final checkpoint is recorded, or its line counts no more.

        Raises:
            JupiterError: a reason that another attempt can't mend.
        """
        barren, wait_s = 0, RETRY_S
        while not self._line.is_over():
            before, left_out = self._line.step(), self._growth.left_out
            try:
                if not await self._go_on():
                    await self._run_attempt(step)
                if not self._line.is_over():
                    self._alarm.check()
            except* JupiterError as group:
                error = deepest(group)
                if self._term.is_over:  # it was ending anyway, and may have lost our cancel
                    raise
                is_set_aside = await self._set_aside(group)
                if is_set_aside or self._line.step() > before:
                    barren, wait_s = 0, 0.0
                if self._growth.left_out > left_out:  # the next gang is another one
                    wait_s = 0.0
                # One that ran out of memory is tried with less: there is an end to that.
                is_mended = is_set_aside or isinstance(error, OutOfMemoryError)
                barren += not (error.may_mend or is_mended)
                is_lost = error.is_permanent or barren >= MAX_BARREN_EPOCHS
                if is_lost and not self._line.is_over():
                    raise error from group
                self._explain_retry(error.message, is_told=not is_set_aside)
                await asyncio.sleep(wait_s)
                wait_s = min(max(2 * wait_s, RETRY_S), MAX_RETRY_S)

    def _explain_retry(self, why: str, *, is_told: bool) -> None:
        """Say why it is tried again; nothing where what it was to make is there."""
        if self._line.is_over():
            return
        log.warning("training_interrupted", extra={"reason": why})
        if is_told:
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
        launch = launch_foretold(self._term, self._services.fleet_view, self._of, launch)
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
            reason, code = deepest(group).message, deepest(group).code
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
        unrecorded, silent = commits.unrecorded, frozenset(self._silent)
        await self._ending.end(
            launch, reason, code, keeps=keeps, unrecorded=unrecorded, silent=silent
        )

    async def _run_gang(self, inputs: Mapping[str, ArtifactId], launch: GangPlan) -> None:
        async with self._watching(launch):
            await self._orders.spread(inputs, launch)
            self._shown.begin(launch)
            self._board.explain(self._cycle, "")
            self._change.mark("spread")
            await self._form_gang(inputs, launch)

    async def _form_gang(self, inputs: Mapping[str, ArtifactId], launch: GangPlan) -> None:
        self._listening = asyncio.Semaphore(0)
        async with self._committing(launch):
            meeting = await self._meeting(launch)
            self._change.mark("meeting")
            async with (
                self._changing(launch, deferred_inputs.at_once(inputs)),
                asyncio.TaskGroup() as group,
            ):
                for rank, node in enumerate(launch.gang):
                    params = self._orders.params(launch, meeting, rank)
                    order = replace(self._orders.rank(launch, rank), params=params, inputs=inputs)
                    events = self._services.calls.run(node, order)
                    if launch.is_ring and rank == len(launch.gang) - 1:
                        await self._others_listen(rank)
                    group.create_task(self._follow(rank, node, events, launch))

    def _committing(self, launch: GangPlan) -> AbstractAsyncContextManager[None]:
        """Record checkpoints while ranks are followed, and all of them before the attempt ends."""
        self._commits = CheckpointCommits()
        return self._commits.committing(lambda node, made: self._try_to_commit(node, made, launch))

    def _watching(self, launch: GangPlan) -> AbstractAsyncContextManager[None]:
        """Let silence of a rank's node, or of all its steps, end the attempt."""
        save_s = wish_for(self._of.shape, 0).within_s
        self._silent.clear()
        longest_busy_s, rate = self._watch.longest_busy_s, launch.predicted_tokens_per_s
        foretold_s = self._of.plan.batch_sequences * self._of.shape.seq_len / rate if rate else None
        first_step_s = self._watch.next_first_step_s(foretold_s)
        self._watch = GangWatchdog(len(launch.gang), now_s(), save_s, longest_busy_s, first_step_s)
        return watching(
            self._watch,
            lambda verdict: self._lost(verdict, launch),
            lambda: self._look_into(launch),
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

    def _lost(self, verdict: Verdict, launch: GangPlan) -> JupiterError:
        if isinstance(verdict, Silent):
            for rank in (verdict.rank, *verdict.others):
                self._silent.add(launch.gang[rank])
                self._services.machines.pass_over(launch.gang[rank])
        else:
            self._late.were_too_slow(launch.late)
        return as_error(
            verdict, "" if verdict.rank is None else self._name(launch.gang[verdict.rank])
        )

    async def _look_into(self, launch: GangPlan) -> None:
        """End an attempt from which nothing comes because of a bad link; the next is without it."""
        gone = await self._reach.hindering(launch)
        if gone:
            # What they are asked would be long on its way; they end their part by themselves.
            self._silent.update(set(gone) - {self._term.self_id})
            names = ", ".join(sorted(map(self._name, gone)))
            raise PeerUnreachableError(f"nothing comes of the gang: the link of {names} is bad")

    async def _others_listen(self, others: int) -> None:
        """Wait until all ranks but the last one listen: that one dials first, and rarely again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LISTEN_TIMEOUT_S):
                for _ in range(others):
                    await self._listening.acquire()

    async def _follow_adopted(self, gang: Adopted, launch: GangPlan) -> None:
        self._shown.begin(launch)
        self._board.explain(self._cycle, "")
        async with (
            self._committing(launch),
            self._watching(launch),
            self._changing(launch, ()),
            asyncio.TaskGroup() as group,
        ):
            for rank, node in enumerate(launch.gang):
                group.create_task(self._follow(rank, node, gang.works[rank], launch))

    async def _meeting(self, launch: GangPlan) -> Rendezvous:
        prove = self._reach.prove_routes
        if launch.choice.engine == MLX:
            return await meet_in_ring(self._services.connectivity, launch.gang, prove)
        store = self._orders.store(launch)
        return await meet_at_store(self._services.connectivity, launch.gang, store, prove)

    async def _follow(
        self, rank: int, node: NodeId, work: AsyncGenerator[WorkEvent], launch: GangPlan
    ) -> None:
        """Follow one rank to its end, and give up on a ring that isn't formed in time."""
        forming, has_met = asyncio.timeout(None), False
        self._watch.heard(rank, now_s())
        try:
            async with forming, aclosing(work) as events:
                async for event in events:
                    self._hear(rank, event)
                    match event:
                        case Started() if launch.is_ring:
                            forming.reschedule(asyncio.get_running_loop().time() + RING_TIMEOUT_S)
                        case GangJoined():
                            has_met = True
                            forming.reschedule(None)
                        case _:
                            pass
                    self._note(rank, node, event, launch)
            self._watch.ended(rank)
        except (OutOfMemoryError, StateNotFetchedError) as error:
            self._take_note(rank, node, error, launch)
            raise
        except WorkerCrashedError as error:
            if has_met or launch.choice.backend != NCCL:
                raise
            told = f"{error.message}; it hadn't summed over NCCL yet"
            raise NcclFailedError(told, error.hint) from error
        except TimeoutError as error:
            if not forming.expired():
                raise
            raise TimedOutError(
                f"the MLX ring wasn't formed within {RING_TIMEOUT_S:g} s, says rank {rank}",
                "they try again by themselves; a firewall between them may stand in the way",
            ) from error

    def _hear(self, rank: int, event: WorkEvent) -> None:
        """Tell the clocks of what a rank says."""
        if self._anew and not rank:
            self._anew.check()
        match event:
            case GangJoined():
                self._watch.joined(rank, now_s())
            case Progressed(values=values) if values.get("waiting"):
                self._watch.heard(rank, now_s())
                self._watch.waits()
            case Progressed(done, values=values) if values.get(BEGINS):
                self._watch.begins(rank, done, now_s())
            case Progressed(done, values=values) if values.get(BUSY):
                self._watch.busy(rank, done, now_s())
            case Progressed(done):
                self._watch.stepped(rank, done, now_s())
            case _:
                self._watch.heard(rank, now_s())

    def _take_note(self, rank: int, node: NodeId, error: JupiterError, launch: GangPlan) -> None:
        """Take note of what the next attempt is to do otherwise."""
        if isinstance(error, StateNotFetchedError):
            self._late.were_too_slow({node})
        else:
            tried = launch.micro_batches[rank] if launch.micro_batches else None
            size = self._memory.halve(node, self._name(node), tried)
            log.warning("micro_batch_halved", extra={"rank": rank, "sequences_at_a_time": size})

    def _note(self, rank: int, node: NodeId, event: WorkEvent, launch: GangPlan) -> None:
        """Take in what one rank says; rank 0 also tells of steps and checkpoints."""
        board = self._board
        match event:
            case Started(pid, device, _):
                self._change.mark("spawned")
                self._shown.workers({rank: {"pid": pid, "device": device}})
            case RankListening():
                self._listening.release()
            case GangJoined(device, note):
                self._change.mark("joined")
                if self._anew:
                    self._watch.waits()
                    self._services.pseudo_gradients.set_training(self._cycle, is_training=True)
                self._shown.workers({rank: {"device": device}})
                if note:
                    log.info("rank_joined", extra={"rank": rank, "device": device, "note": note})
                    board.explain(self._cycle, note)
            case Progressed(values=values) if not values.get(BUSY):
                self._note_step(rank, event, launch)
            case CheckpointStored():
                self._commits.add(node, event)
            case PseudoGradientStored():
                self._watch.waits()
                self._services.pseudo_gradients.tell(
                    self._cycle, ReportedPseudoGradient(event, node, now_s())
                )
            case CheckpointUnsaved(step, message):
                self._alarm.ring(step, message, node)
            case _:
                pass

    def _note_step(self, rank: int, event: Progressed, launch: GangPlan) -> None:
        self._shown.stepped(rank, event)
        if rank == 0:
            self._change.finish(launch.attempt)
            self._board.advance(self._cycle, "train", event, now_s())

    async def _try_to_commit(self, node: NodeId, made: CheckpointStored, launch: GangPlan) -> None:
        """Record a checkpoint; without room training goes on, and the next one contains it."""
        try:
            await self._line.commit(node, made, launch, self._of.plan)
        except DiskFullError as error:
            self._alarm.ring(made.progress.step, error.message)
        else:
            self._alarm.over()
