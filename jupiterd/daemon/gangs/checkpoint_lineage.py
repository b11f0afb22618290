"""The branch of checkpoints that one attempt after another of a round extends.

Owns what is recorded of a checkpoint, and whether its branch is the canonical one. Doesn't know
gangs: what they have saved is handed in.

A member that was cut off may have recorded a last step that it alone holds. What the others have
saved is recorded as another branch; where it has as many steps, but for one, the branch whose last
checkpoint nobody in reach holds is suspended at once (and competes again when it turns up).
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
"""Checkpoints that are looked for, from the branch's end on; each may take half a second."""


class CheckpointLineage:
    """The end of the branch that the running attempt extends."""

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
        """Say whether nothing is left to train: it's done, or isn't what comes next on the branch.

        Where the trunk can't be gone on with after all, the round has another plan.
        """
        cycle = self._term.cycle(self._cycle)
        last = cycle.last_checkpoint(self._round)
        is_trained = last is not None and last.is_final
        is_other = trunk_of(cycle, self._round) != self._trunk
        return is_trained or is_other or cycle.rounds_committed + 1 != self._round

    def is_trained_in(self, attempt: int) -> bool:
        """Say whether an attempt has saved its round's last checkpoint: then it lost nothing."""
        last = self._term.cycle(self._cycle).last_checkpoint(self._round)
        return last is not None and last.is_final and last.attempt == attempt

    def follow(self, gang_plan: GangPlan) -> None:
        """Take up the branch of an attempt, as far as it has been recorded."""
        self._missing = set()
        self._take_up(gang_plan)

    def _take_up(self, gang_plan: GangPlan) -> None:
        last = self._term.cycle(self._cycle).last_of_attempt(gang_plan.attempt, self._missing)
        self.tip = (
            (gang_plan.follows or gang_plan.from_checkpoint) if last is None else last.artifact
        )

    async def look(self, gang_plan: GangPlan) -> None:
        """Take up the branch of an attempt as far as its checkpoints are in reach."""
        self._missing = set()
        while len(self._missing) < MAX_MISSING:
            cycle = self._term.cycle(self._cycle)
            newest = (
                cycle.last_checkpoint(self._round, self._missing),
                cycle.last_of_attempt(gang_plan.attempt, self._missing),
            )
            found = {fact.artifact for fact in newest if fact is not None}
            gone = {each for each in found if not await self._reach.is_in_reach(each)}
            if not gone:
                break
            self._missing |= gone
        self._take_up(gang_plan)

    def step(self) -> int:
        """Return the last recorded step of the round, on the canonical branch."""
        last = self._term.cycle(self._cycle).last_checkpoint(self._round, self._missing)
        return 0 if last is None else last.step

    def recorded_step(self, attempt: int) -> int:
        """Return the last step that is recorded of an attempt; 0: of none."""
        last = self._term.cycle(self._cycle).last_of_attempt(attempt)
        return 0 if last is None else last.step

    def suspensions_for(self, saved: CheckpointStored | None) -> Sequence[BranchSuspended]:
        """Return what suspends a branch that is out of reach, so that one in reach counts."""
        cycle = self._term.cycle(self._cycle)
        last = cycle.last_checkpoint(self._round)
        here = max(self.step(), 0 if saved is None else saved.progress.step)
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
        self, node: NodeId, saved: CheckpointStored, gang_plan: GangPlan, plan: TrainPlan
    ) -> None:
        """Record a checkpoint once it is on two nodes, where two can be reached.

        What an island saves on the way isn't copied, as long as others have the same weights. A
        gang that was adopted tells again of those that the leader before has recorded.

        Raises:
            BranchChangedError: it is recorded as a leaf of a branch that counts no more.
        """
        facts = self.facts_of(saved, gang_plan, plan)
        if not facts:
            return
        if facts[-1].is_final or not self._is_held_by_others():
            await self._reach.keep_two_copies(saved.artifact, node)
        await self._term.record(*facts)
        self.tip = saved.artifact
        if not self._term.cycle(self._cycle).ends_at(self._round, saved.artifact):
            raise BranchChangedError(
                f"attempt {gang_plan.attempt} trained a line of the cycle that counts no more"
            )

    def _is_held_by_others(self) -> bool:
        cycles = self._term.state.cycles
        return is_shared_by_others(cycles, self._term.cycle(self._cycle))

    def facts_of(
        self, saved: CheckpointStored | None, gang_plan: GangPlan, plan: TrainPlan
    ) -> Sequence[CheckpointCommitted]:
        """Return what is to be recorded of a checkpoint: nothing where that is done.

        It outweighs what it hangs below in its round, even where an island goes on from another's,
        which had trained on less.
        """
        if saved is None or self._is_recorded(saved, gang_plan.attempt):
            return ()
        above = self._term.cycle(self._cycle).checkpoint(self.tip)
        is_inside = above is not None and above.round == self._round
        least = above.tokens + 1 if above is not None and is_inside else 0
        progress = saved.progress
        horizon = Horizon.of(progress.horizon)
        committed = CheckpointCommitted(
            cycle=self._cycle,
            round=self._round,
            parent=self.tip,
            artifact=saved.artifact,
            attempt=gang_plan.attempt,
            step=progress.step,
            tokens=max(progress.tokens, least),
            cursor=progress.cursor,
            loss=progress.loss,
            is_final=is_over(plan, horizon, progress.step),
            on_trunk=is_on_trunk(plan, horizon, progress.step),
            began_with=gang_plan.from_checkpoint,
            horizon=progress.horizon,
        )
        return (committed,)

    def opened(self, gang_plan: GangPlan) -> AttemptOpened:
        """Return what is recorded of an attempt that begins."""
        cut = None if gang_plan.partition is None else gang_plan.partition.partition
        return AttemptOpened(
            cycle=self._cycle,
            round=self._round,
            attempt=gang_plan.attempt,
            gang=gang_plan.gang,
            engine=gang_plan.choice.label,
            from_checkpoint=gang_plan.from_checkpoint,
            from_step=gang_plan.from_step,
            engine_reason=gang_plan.choice.reason,
            micro_batches=gang_plan.micro_batches,
            follows=gang_plan.follows,
            predicted_tokens_per_s=gang_plan.predicted_tokens_per_s,
            stage=0 if cut is None else cut.stage,
            parts=() if cut is None else cut.parts,
        )

    def _is_recorded(self, saved: CheckpointStored, attempt: int) -> bool:
        last = self._term.cycle(self._cycle).last_of_attempt(attempt, self._missing)
        is_old = last is not None and saved.progress.step <= last.step
        return is_old or saved.artifact == self.tip  # told twice: nothing hangs below itself
