"""Setting a branch of outer steps aside whose end nobody in reach could go on from.

Owns when the leader looks, for how long it is patient, and what it records. Doesn't know which
steps are to be set aside (`cluster.ledger.outer_branch`), or what islands do then: they go on with
the branch that counts by now, as they do when another group's does.
"""

import asyncio
import logging

from jupiterd.cluster.artifacts.retention import RETAINED_STEPS
from jupiterd.cluster.facts.facts import OuterStepAbandoned
from jupiterd.cluster.ledger.outer_branch import Steps, steps_to_abandon
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId, short

log = logging.getLogger(__name__)

PATIENCE_S = 20.0
"""Longer than it takes to see that a machine is gone."""


class LostOuterSteps:
    """What one island that can't go on sees of its run's line, in one term."""

    def __init__(
        self,
        term: Term,
        board: ProgressBoard,
        reach: ArtifactReach,
        run: CycleId,
        round_number: int,
    ) -> None:
        self._term, self._board, self._reach = term, board, reach
        self._run = run
        self._round = round_number
        self._missing_since_s: float | None = None

    async def set_aside(self) -> bool:
        """Park what leads to the line's end, if that has been missing at each look for a while."""
        to_park = await self._to_park()
        if not to_park:
            self._missing_since_s = None
            return False
        if self._missing_since_s is None:
            self._missing_since_s = now_s()
        if now_s() - self._missing_since_s < PATIENCE_S:
            return False
        log.warning("outer_line_parked", extra={"run": self._run, "from_step": short(to_park[0])})
        await self._term.record(*(OuterStepAbandoned(self._run, step) for step in to_park))
        told = "nobody in reach has what the last outer steps merged; going on without them"
        self._board.explain(self._run, told)
        return True

    async def _to_park(self) -> list[str]:
        cycle = self._term.cycle(self._run)
        line = cycle.outer_branch(self._round)
        end = next(reversed([*line]), "")
        if not end or await self._is_in_reach(line, end):
            return []
        steps = cycle.outer_steps_in(self._round)
        recent = [key for key in steps if steps[key].number > line[end].number - RETAINED_STEPS]
        here = await asyncio.gather(*(self._is_in_reach(steps, key) for key in recent))
        missing = [key for key, is_here in zip(recent, here, strict=True) if not is_here]
        return steps_to_abandon(steps, missing)

    async def _is_in_reach(self, steps: Steps, key: str) -> bool:
        """Say whether whoever stands before this step could take it."""
        pseudo_gradients = steps[key].pseudo_gradients
        return all(
            await asyncio.gather(*(self._reach.is_in_reach(way) for way in pseudo_gradients))
        )
