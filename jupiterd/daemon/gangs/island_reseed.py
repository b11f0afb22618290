"""An island that can't go on from what it has, and begins anew from what another one has saved.

Owns when it does, and what the leader records. Doesn't know gangs, or how a seed is chosen
(`cluster.island_seeds`).

    the others went on without it,       from the newest checkpoint in reach of an island whose
    or outer steps can't be had          outer steps count. Where no island has one yet: from its
                                         own one before, and from the first weights at last, until
                                         another one has saved something. Where nobody in reach
                                         has what the line's end merged: from what it has, once
                                         that line is set aside (`lost_outer_steps`)
    its way was left out once            not at all: its ranks take the weights of all with the
                                         next outer step, and forget moments that are no numbers
    left out twice running               as above: with sound weights it went astray again, so
                                         its moments, its process or its machine are at fault
                                         (where rounds overlap, three times: the second round had
                                         begun before it took the weights of all)
    its weights or momentum aren't       as above, at once: each outer step that it takes would keep
    those of the others                  the difference. Until another one has saved something that
                                         it hasn't tried, it trains on, and its ways are left out
"""

import logging

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import islands_of
from jupiterd.cluster.ledger.outer_branch import Steps
from jupiterd.cluster.training.island_seeds import (
    BY_NO_GANG,
    ROUND,
    left_out_again,
    left_out_last,
    reseeded,
    seeds,
)
from jupiterd.cycle.islands.outer_orders import ADRIFT, QUARANTINED
from jupiterd.daemon.gangs.damaged_checkpoints import suspend_damaged
from jupiterd.daemon.gangs.lost_outer_steps import LostOuterSteps
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import IslandLeftOutError, IslandLostError, JupiterError, StateNotFetchedError
from jupiterd.ids import CycleId, short

log = logging.getLogger(__name__)


class IslandReseed:
    """That of one island, for one term."""

    def __init__(
        self, term: Term, board: ProgressBoard, reach: ArtifactReach, island: CycleId, run: CycleId
    ) -> None:
        self._term, self._board, self._reach = term, board, reach
        self._island = island
        self._run = run
        training = term.cycle(island).training
        self._round = 1 if training is None else training.parent_round
        """Of the run, or the cycle, of which it is a part."""
        self._looked_at: dict[str, str] = {}
        """Reason -> the last outer step that has led to it."""
        self._seen: tuple[str, ...] = ()
        """The line's end and what others had saved, as of the last look: until either changes,
        there is nothing to look at, and a rank tells several things a second."""
        self._begun_after = self._end_number() if self._has_just_begun() else -1
        """Number of the last outer step there was when it began anew: what it told in the rounds
        until then is of what it had before."""
        self._lost_line = LostOuterSteps(term, board, reach, run, self._round)

    def check(self) -> None:
        """Look whether a gang that trains is to end for it.

        Raises:
            IslandLeftOutError: its way was left out twice running, or once since its weights aren't
                those of the others, and there is a seed.
        """
        line = self._line
        seen = (next(reversed([*line]), ""), *map(_last_saved, self._others()))
        if seen == self._seen:
            return
        self._seen = seen
        again = left_out_again(line, self._island, QUARANTINED)
        if again and again != self._looked_at.get(QUARANTINED) and self._seeds():
            self._looked_at[QUARANTINED] = again
            raise IslandLeftOutError(f"its way was left out twice running: {QUARANTINED}")
        apart = left_out_last(line, self._island, ADRIFT, self._begun_after)
        is_news = apart != self._looked_at.get(ADRIFT)
        if apart and is_news and any(map(self._is_new, self._seeds())):
            self._looked_at[ADRIFT] = apart
            raise IslandLeftOutError(f"its way was left out: {ADRIFT}")

    async def begin(self, start: str, error: JupiterError) -> bool:
        """Let the next attempt start from elsewhere; say no where the same is to be tried again.

        start: the checkpoint that the last attempt began with, or empty

        Raises:
            IslandLostError: there is nothing left to begin with.
        """
        found = self._seeds()
        for seed in found:
            if self._is_new(seed) and await self._reach.is_in_reach(seed.artifact):
                await self._record(seed, error)
                return True
        if await self._lost_line.set_aside():
            return False  # what it has may be of the line that counts by now
        if found or isinstance(error, IslandLeftOutError):
            return False  # whoever has one may come back, and there will be newer ones
        if not start and (self._state.last_checkpoint(ROUND) or self._others_go_on()):
            return False  # from what it has saved since, which may be set aside; or they save first
        if not start:
            raise IslandLostError(f"this island can't begin anew: {error.message}") from error
        await suspend_damaged(
            self._term, self._board, self._reach, self._island, start, error.message
        )
        return True

    @property
    def _state(self) -> CycleState:
        return self._term.cycle(self._island)

    @property
    def _line(self) -> Steps:
        return self._term.cycle(self._run).outer_branch(self._round)

    def _end_number(self) -> int:
        return max((step.number for step in self._line.values()), default=-1)

    def _has_just_begun(self) -> bool:
        """Say whether it has saved nothing since it last began anew, whoever led then."""
        last = self._state.last_checkpoint(ROUND)
        return last is not None and last.attempt == BY_NO_GANG

    def _others_go_on(self) -> bool:
        return any(not state.has_nothing_to_do for state in self._others())

    def _others(self) -> list[CycleState]:
        islands = islands_of(self._term.state.cycles, self._run)
        return [state for state, started in islands if started.cycle != self._island]

    def _seeds(self) -> list[CheckpointCommitted]:
        """Return what there is to begin with, tried or not; nothing that turned out damaged."""
        found = seeds(self._line, self._others(), ADRIFT)
        return [seed for seed in found if seed.artifact not in self._reach.damaged]

    def _is_new(self, seed: CheckpointCommitted) -> bool:
        """Say whether it hasn't begun with that before."""
        return self._state.checkpoint(seed.artifact) is None

    async def _record(self, seed: CheckpointCommitted, error: JupiterError) -> None:
        last = self._state.last_checkpoint(ROUND)
        await self._term.record(reseeded(self._island, seed, last))
        self._begun_after, self._seen = self._end_number(), ()
        extra = {"island": self._island, "from_step": seed.step, "of": short(seed.cycle)}
        log.warning("island_begins_anew", extra={**extra, "reason": error.message})
        message = f"{error.message}; going on from another island's step {seed.step}"
        self._board.explain(self._island, message)


def _last_saved(island: CycleState) -> str:
    last = island.last_checkpoint(ROUND)
    return "" if last is None else last.artifact


def reason_to_begin_anew(errors: list[JupiterError]) -> JupiterError | None:
    """Return what of an attempt's errors says that its state is of no use; None: nothing."""
    kinds = (StateNotFetchedError, IslandLeftOutError)
    return next((error for error in errors if isinstance(error, kinds)), None)
