"""The leader's eye on the checkpoints that lines end in: a line is set aside where one is missing.

Owns when it looks, and what it records. Doesn't know how a line is found (`progress_tree`), or how
long is long enough (`parking`).

1. Where nobody in reach has had the checkpoint of a running cycle's line for a minute, that line is
   parked, and the next best one counts: the work goes on from what is here. With nothing else to go
   on from it waits, as it did.
2. Where a parked checkpoint has turned up, its line competes again. A gang that trains on another
   line by then keeps what it has made as a branch.
3. So is the end of the trunk that the next round would go on with: the round begins with the
   weights of the last candidate then.
4. Of a cycle that is over, was stopped or has a gang running, or an island's, nothing is parked.
"""

import asyncio
import logging
from functools import partial

from jupiterd.cluster.artifacts.branch_suspension import Absences
from jupiterd.cluster.facts.facts import BranchSuspended
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import islands_of
from jupiterd.cluster.ledger.progress_tree import Leaf
from jupiterd.cluster.ledger.trunk import trunk_of
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cluster.values.branch_names import branch_name
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, CycleId, short

log = logging.getLogger(__name__)

LOOK_S = 5.0
MAX_PARKED_AT_ONCE = 64
"""Checkpoints of one line that are looked for, from its end on."""


async def watch_branches(term: Term, board: ProgressBoard, reach: ArtifactReach) -> None:
    """Park lines and let them compete again, until cancelled."""
    absences = Absences()
    while True:
        for cycle_id, cycle in tuple(term.state.cycles.items()):
            await _try_to_settle(term, board, reach, cycle_id, cycle, absences)
        await asyncio.sleep(LOOK_S)


async def _try_to_settle(
    term: Term,
    board: ProgressBoard,
    reach: ArtifactReach,
    cycle_id: CycleId,
    cycle: CycleState,
    absences: Absences,
) -> None:
    try:
        await resume_found(term, board, reach, cycle_id, cycle)
        await suspend_missing(term, board, reach, cycle_id, cycle, absences)
    except JupiterError as error:
        if term.is_over:
            raise
        log.warning("line_not_settled", extra={"cycle": cycle_id, "reason": error.message})


async def resume_found(
    term: Term, board: ProgressBoard, reach: ArtifactReach, cycle_id: CycleId, cycle: CycleState
) -> None:
    """Let lines compete again whose checkpoint has turned up."""
    missing = sorted(cycle.suspended - reach.damaged)
    back = [leaf for leaf in missing if await _is_here(reach, leaf)]
    if back:
        await _record(term, board, cycle_id, cycle, back, is_suspended=False)


async def suspend_missing(
    term: Term,
    board: ProgressBoard,
    reach: ArtifactReach,
    cycle_id: CycleId,
    cycle: CycleState,
    absences: Absences,
) -> None:
    """Park the line that counts if its checkpoint has been missing for long enough."""
    is_at_rest = partial(_is_at_rest, term, cycle_id, cycle)
    leaf = None if is_at_rest() else cycle.leaf_without(frozenset())
    wanted = [] if leaf is None else [leaf.checkpoint.artifact, *_trunk(cycle)]
    absent = [each for each in wanted if not await _is_here(reach, each)]
    if not absent:
        absences.found(cycle_id)
    elif absences.is_over(now_s(), cycle_id, absent[0]):
        is_trunk = absent[0] != wanted[0]
        missing = absent if is_trunk else await _missing(reach, cycle)
        if missing and not is_at_rest():
            await _record(term, board, cycle_id, cycle, missing, is_suspended=True)


def _trunk(cycle: CycleState) -> list[str]:
    """Return the end of the trunk that a round is to begin with, if it has saved nothing yet."""
    number = cycle.rounds_committed + 1
    has_begun = cycle.last_checkpoint(number) is not None
    return [] if has_begun else list(filter(None, [trunk_of(cycle, number)]))


def _is_at_rest(term: Term, cycle_id: CycleId, cycle: CycleState) -> bool:
    if cycle.begun is None or cycle.has_nothing_to_do:
        return True
    islands = islands_of(term.state.cycles, cycle_id)
    return any(each.open_attempts for each in [cycle, *(island for island, _ in islands)])


async def _missing(reach: ArtifactReach, cycle: CycleState) -> list[str]:
    """Return what must be parked so that the line ends in what is here; nothing where none does."""
    missing: list[str] = []
    for _ in range(MAX_PARKED_AT_ONCE):
        leaf: Leaf | None = cycle.leaf_without(frozenset(missing))
        if leaf is None:
            return []
        if await _is_here(reach, leaf.checkpoint.artifact):
            return missing
        missing.append(leaf.checkpoint.artifact)
    return []


async def _is_here(reach: ArtifactReach, checkpoint: str) -> bool:
    return await reach.artifact_cache.is_in_reach(ArtifactId(checkpoint))


async def _record(
    term: Term,
    board: ProgressBoard,
    cycle_id: CycleId,
    cycle: CycleState,
    leaves: list[str],
    *,
    is_suspended: bool,
) -> None:
    for leaf in leaves:
        extra = {"cycle": cycle_id, "branch": branch_name(cycle_id, leaf)}
        log.info("line_parked" if is_suspended else "line_taken_up", extra=extra)
    await term.record(
        *(
            BranchSuspended(cycle_id, leaf, is_suspended, edit_after(cycle.suspension_edit(leaf)))
            for leaf in leaves
        )
    )
    if is_suspended:
        board.explain(
            cycle_id, f"nobody in reach has checkpoint {short(leaves[0])}; going on without it"
        )
