"""Ending an attempt everywhere, and recording how it ended and the last step of its survivors.

Owns what survivors are asked to save, and the facts. Doesn't know why an attempt ends: its reason
is handed in.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN, AttemptClosed
from jupiterd.cycle.training.horizon import Horizon, end_step
from jupiterd.daemon.gangs.checkpoint_lineage import CheckpointLineage
from jupiterd.daemon.gangs.surviving_states import latest, save_request_for
from jupiterd.daemon.gangs.transition_timing import TransitionTiming
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import CheckpointStored, SaveRequest
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId

log = logging.getLogger(__name__)

FINISHED = "finished"
STOPPED = "one of its machines was stopped"
"""All steps that were begun are finished, and the round isn't."""


Unrecorded = Callable[[], Awaitable[Sequence[tuple[NodeId, CheckpointStored]]]]
"""Returns checkpoints that aren't recorded yet, and who holds them; called once ranks are ended,
and again where that couldn't be recorded."""


class AttemptEnd:
    """Ends the attempts of one round."""

    def __init__(
        self,
        term: Term,
        reach: ArtifactReach,
        calls: WorkCalls,
        lineage: CheckpointLineage,
        transition_timing: TransitionTiming,
        trained_round: TrainedRound,
    ) -> None:
        self._term, self._reach, self._calls = term, reach, calls
        self._lineage = lineage
        self._transition_timing = transition_timing
        self._trained_round = trained_round
        self._unrecorded: dict[int, list[Unrecorded]] = {}
        """Attempt -> what it has left: where its end can't be recorded, it ends again."""

    async def end(
        self,
        gang_plan: GangPlan,
        reason: str,
        code: str = "",
        *,
        saves_last_step: bool = False,
        unrecorded: Unrecorded | None = None,
        silent: AbstractSet[NodeId] = frozenset(),
    ) -> None:
        """End it and record that; an error on the way is logged, so that the reason isn't lost.

        With `saves_last_step`, the last finished step of its survivors is recorded on the branch;
        where each holds a part of the model, the branch ends with its last checkpoint.
        `unrecorded`: checkpoints that are stored and not recorded yet. No answer of `silent` nodes
        is awaited.
        """
        left = self._unrecorded.setdefault(gang_plan.attempt, [])
        if unrecorded is not None:
            left.append(unrecorded)
        elapsed_s = round(now_s() - gang_plan.began_s, 3)
        try:
            is_whole = not gang_plan.cuts_state  # else no survivor has what a lost one held
            save = await self._save_request(gang_plan) if saves_last_step and is_whole else None
            saved = await self._calls.end_gang(gang_plan.gang, gang_plan.attempt, save, silent)
            more = [each for found in left for each in await found()]
            saved += [each for each in more if each[0] not in silent]
            self._transition_timing.mark("ended")
            is_joined = not saves_last_step and reason not in (FINISHED, LEFT_OPEN)
            last = await latest(
                self._term, self._reach, saved, self._end_step(saved) if is_joined else 0
            )
            if saves_last_step:
                # One that was cut off may have recorded meanwhile what it alone holds.
                await self._lineage.look(gang_plan)
            facts = self._lineage.facts_of(last, gang_plan, self._trained_round.plan)
            if self._lineage.is_trained_in(gang_plan.attempt) or any(
                fact.is_final for fact in facts
            ):
                reason, code = FINISHED, ""  # whatever became of its ranks then
            closing_reason = self._end_reason(reason, is_over=any(fact.is_final for fact in facts))
            closed = AttemptClosed(
                self._trained_round.cycle, gang_plan.attempt, closing_reason, elapsed_s, code
            )
            await self._term.record(*facts, *self._lineage.suspensions_for(last), closed)
            del self._unrecorded[gang_plan.attempt]
            self._transition_timing.mark("closed")
        except JupiterError as error:
            extra = {"attempt": gang_plan.attempt, "reason": error.message}
            log.warning("attempt_left_open", extra=extra)

    def _end_step(self, saved: Sequence[tuple[NodeId, CheckpointStored]]) -> int:
        """Return where training ends, as far as what was kept has decided it."""
        return min(
            (
                end_step(self._trained_round.plan, Horizon.of(stored.progress.horizon))
                for _, stored in saved
            ),
            default=0,
        )

    def _end_reason(self, reason: str, *, is_over: bool) -> str:
        is_over = is_over or self._lineage.is_over()
        return STOPPED if reason == FINISHED and not is_over else reason

    async def _save_request(self, gang_plan: GangPlan) -> SaveRequest:
        """Return what the survivors save: a later step than any branch in reach has recorded."""
        await self._lineage.look(gang_plan)
        return save_request_for(self._trained_round.shape, self._lineage.step())
