"""The last weights of all islands: from which island they are recorded, and how the others end.

Owns waiting for them. Doesn't know outer rounds, or how an island writes its weights.
"""

from collections.abc import Callable, Collection

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cluster.ledger.island_runs import stopped_in
from jupiterd.cluster.training.island_seeds import left_out_last
from jupiterd.cycle.islands.outer_orders import ADRIFT
from jupiterd.cycle.islands.outer_round import LOST_GRACE_S
from jupiterd.daemon.islands.island_facts import last_weights
from jupiterd.daemon.islands.island_roster import IslandRoster
from jupiterd.daemon.islands.outer_round_collection import LOOK_S
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.training_spec import ROUND, TrainingSpec
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId

MOMENT_S = 3.0
"""How long islands may take to end by themselves once the last weights of all are recorded."""


class FinalWeights:
    """Waits for the last weights of one training's islands, and records them."""

    def __init__(
        self, term: Term, roster: IslandRoster, pseudo_gradients: PseudoGradients, of: TrainingSpec
    ) -> None:
        self._term, self._roster = term, roster
        self._pseudo_gradients = pseudo_gradients
        self._of = of
        self._sound_seen_s = now_s()
        """When an island was here last that has the weights of all, as training ends."""

    async def record(self, taken: OuterStepTaken, is_over: Callable[[], bool]) -> None:
        """Record the final checkpoint: that of the first island that has recorded its own.

        A cycle's others end soon after it: they have the same weights, and judge these now.

        Args:
            taken: the last outer step.
            is_over: whether the round has its checkpoint, or is no longer the islands'.

        Raises:
            JupiterError: all islands have failed.
        """
        while not (self._term.is_over or is_over()):
            self._roster.check_any_left()
            if (found := self._found()) is not None:
                await self._term.record(last_weights(self._of, found, taken))
                await self._end_others()
                return
            await self._pseudo_gradients.news(LOOK_S)

    def _found(self) -> CheckpointCommitted | None:
        """Return the last weights of all, as the first island has recorded them.

        Those of one that was adrift may be others: they count where nobody else will record any.
        """
        branch, islands = self._roster.branch, self._roster.all()
        lasts = [(each, state.last_checkpoint(ROUND)) for each, (state, _) in islands.items()]
        written = {each: last for each, last in lasts if last is not None and last.is_final}
        sound = [each for each in islands if not left_out_last(branch, each, ADRIFT)]
        found = next((written[each] for each in sound if each in written), None)
        if found is not None or self._may_yet_end(sound):
            return found
        return next(iter(written.values()), None)

    def _may_yet_end(self, islands: Collection[CycleId]) -> bool:
        """Say whether any of these may yet record something: who is away often comes back."""
        going_on = [each for each in islands if not self._roster.has_ended(each)]
        if not all(map(self._roster.is_gone, going_on)):
            self._sound_seen_s = now_s()
        return bool(going_on) and now_s() < self._sound_seen_s + LOST_GRACE_S

    async def _end_others(self) -> None:
        """End the islands of a cycle's round, when they had a moment to do so by themselves."""
        if self._roster.state.started is None:
            return
        until_s = now_s() + MOMENT_S
        while self._roster.is_any_at_work() and now_s() < until_s:
            await self._pseudo_gradients.news(LOOK_S)
        run, cycles = self._of.started.cycle, self._term.state.cycles
        if left := stopped_in(cycles, run, self._of.round, "its round is trained"):
            await self._term.record(*left)
