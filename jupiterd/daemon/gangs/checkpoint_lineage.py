"""The line of checkpoints that one attempt after another of a round extends.

Owns what is recorded of a checkpoint, and whether the line counts. Doesn't know gangs: it is told
what they have made.

A member that was cut off may have recorded a last step that it alone holds. What the others have
kept is recorded beside that; where it is as good as the same, the line that nobody in reach can go
on from is parked at once (and competes again when its checkpoint turns up).
"""

from collections.abc import Sequence

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import BranchSuspended, CheckpointCommitted
from jupiterd.cluster.ledger.island_runs import is_shared_by_others
from jupiterd.cluster.ledger.trunk import trunk_of
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.training.horizon import Horizon, is_on_trunk, is_over
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.work_events import CheckpointStored
from jupiterd.errors import BranchChangedError
from jupiterd.ids import CycleId, NodeId

AT_MOST_LOST_STEPS = 1
"""For so many steps nobody waits for a machine that is away."""

MAX_MISSING = 8
"""Checkpoints that are looked for, from the line's end on; each may take half a second."""


class CheckpointLineage:
    """The end of the line that the running attempt is on."""

    def __init__(self, term: Term, reach: ArtifactReach, cycle: CycleId, round_number: int) -> None:
        self._term, self._reach = term, reach
        self._cycle = cycle
        self._round = round_number
        self.start = ""
        """What the last attempt that was planned was to start from; empty at the root."""
        self.tip = ""
        """The last checkpoint, or empty at the root."""
        self._missing: set[str] = set()
        """Of the newest checkpoints, those that nobody in reach holds."""
        self._trunk = trunk_of(term.cycle(cycle), round_number)

    def is_over(self) -> bool:
        """Say whether nothing is left to train: it's done, or isn't what comes next on the line.

        Where the trunk can't be gone on with after all, the round has another plan.
        """
        cycle = self._term.cycle(self._cycle)
        last = cycle.last_checkpoint(self._round)
        is_trained = last is not None and last.is_final
        is_other = trunk_of(cycle, self._round) != self._trunk
        return is_trained or is_other or cycle.rounds_committed + 1 != self._round

    def is_trained_in(self, attempt: int) -> bool:
        """Say whether an attempt has made what its round ends with: then nothing was lost in it."""
        last = self._term.cycle(self._cycle).last_checkpoint(self._round)
        return last is not None and last.is_final and last.attempt == attempt

    def follow(self, launch: GangPlan) -> None:
        """Take up the line of an attempt, as far as it has been recorded."""
        self._missing = set()
        self._take_up(launch)

    def _take_up(self, launch: GangPlan) -> None:
        last = self._term.cycle(self._cycle).last_of_attempt(launch.attempt, self._missing)
        self.tip = (launch.follows or launch.from_checkpoint) if last is None else last.artifact

    async def look(self, launch: GangPlan) -> None:
        """Take up the line of an attempt as far as it can be gone on from."""
        self._missing = set()
        while len(self._missing) < MAX_MISSING:
            cycle = self._term.cycle(self._cycle)
            newest = (
                cycle.last_checkpoint(self._round, self._missing),
                cycle.last_of_attempt(launch.attempt, self._missing),
            )
            found = {fact.artifact for fact in newest if fact is not None}
            gone = {each for each in found if not await self._reach.is_in_reach(each)}
            if not gone:
                break
            self._missing |= gone
        self._take_up(launch)

    def step(self) -> int:
        """Return the last recorded step of the round, on the line that counts."""
        last = self._term.cycle(self._cycle).last_checkpoint(self._round, self._missing)
        return 0 if last is None else last.step

    def parked_for(self, made: CheckpointStored | None) -> Sequence[BranchSuspended]:
        """Return what is to be recorded so that a state that is here counts; see above."""
        cycle = self._term.cycle(self._cycle)
        last = cycle.last_checkpoint(self._round)
        here = max(self.step(), 0 if made is None else made.progress.step)
        if last is None or last.artifact not in self._missing:
            return ()
        if last.step > here + AT_MOST_LOST_STEPS:
            return ()
        missing = sorted(self._missing)
        return [
            BranchSuspended(
                self._cycle, each, is_suspended=True, edit=edit_after(cycle.suspension_edit(each))
            )
            for each in missing
        ]

    async def commit(
        self, node: NodeId, made: CheckpointStored, launch: GangPlan, plan: TrainPlan
    ) -> None:
        """Record a checkpoint once it is on two nodes, where two can be reached.

        What an island saves on the way isn't copied, as long as others have the same weights. A
        gang that was adopted tells again of those that the leader before has recorded.

        Raises:
            BranchChangedError: it is recorded as a leaf of a line that counts no more.
        """
        facts = self.facts_of(made, launch, plan)
        if not facts:
            return
        if facts[-1].is_final or not self._is_held_by_others():
            await self._reach.keep_two_copies(made.artifact, node)
        await self._term.record(*facts)
        self.tip = made.artifact
        if not self._term.cycle(self._cycle).ends_at(self._round, made.artifact):
            raise BranchChangedError(
                f"attempt {launch.attempt} trained a line of the cycle that counts no more"
            )

    def _is_held_by_others(self) -> bool:
        cycles = self._term.state.cycles
        return is_shared_by_others(cycles, self._term.cycle(self._cycle))

    def facts_of(
        self, made: CheckpointStored | None, launch: GangPlan, plan: TrainPlan
    ) -> Sequence[CheckpointCommitted]:
        """Return what is to be recorded of a checkpoint: nothing where that is done.

        It outweighs what it hangs below in its round, even where an island goes on from another's,
        which had trained on less.
        """
        if made is None or self._is_recorded(made, launch.attempt):
            return ()
        above = self._term.cycle(self._cycle).checkpoint(self.tip)
        is_inside = above is not None and above.round == self._round
        least = above.tokens + 1 if above is not None and is_inside else 0
        progress = made.progress
        horizon = Horizon.of(progress.horizon)
        committed = CheckpointCommitted(
            cycle=self._cycle,
            round=self._round,
            parent=self.tip,
            artifact=made.artifact,
            attempt=launch.attempt,
            step=progress.step,
            tokens=max(progress.tokens, least),
            cursor=progress.cursor,
            loss=progress.loss,
            is_final=is_over(plan, horizon, progress.step),
            on_trunk=is_on_trunk(plan, horizon, progress.step),
            began_with=launch.from_checkpoint,
            horizon=progress.horizon,
        )
        return (committed,)

    def opened(self, launch: GangPlan) -> AttemptOpened:
        """Return what is recorded of an attempt that begins."""
        return AttemptOpened(
            cycle=self._cycle,
            round=self._round,
            attempt=launch.attempt,
            gang=launch.gang,
            engine=launch.choice.label,
            from_checkpoint=launch.from_checkpoint,
            from_step=launch.from_step,
            engine_reason=launch.choice.reason,
            micro_batches=launch.micro_batches,
            follows=launch.follows,
            predicted_tokens_per_s=launch.predicted_tokens_per_s,
        )

    def _is_recorded(self, made: CheckpointStored, attempt: int) -> bool:
        last = self._term.cycle(self._cycle).last_of_attempt(attempt, self._missing)
        is_old = last is not None and made.progress.step <= last.step
        return is_old or made.artifact == self.tip  # told twice: nothing hangs below itself
