"""One step after another of a cycle or a run, until it is finished or the term is over.

Owns what becomes of an error on the way. Doesn't know what a step does.
"""

import logging
from collections.abc import Awaitable, Callable

from jupiterd.cluster.facts.facts import CycleFailed
from jupiterd.cluster.ledger.island_runs import failed_with
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_item import wait_out
from jupiterd.error_groups import all_of
from jupiterd.errors import JupiterError
from jupiterd.ids import CycleId

log = logging.getLogger(__name__)


async def step_until_finished(
    term: Term, board: ProgressBoard, cycle: CycleId, step: Callable[[], Awaitable[None]]
) -> None:
    """Do what comes next again and again; an error that won't mend ends the cycle."""
    try:
        while not (term.is_over or term.cycle(cycle).has_nothing_to_do):
            await _try_step(term, board, cycle, step)
    finally:
        board.end(cycle)


async def _try_step(
    term: Term, board: ProgressBoard, cycle: CycleId, step: Callable[[], Awaitable[None]]
) -> None:
    try:
        await step()
    except* JupiterError as group:
        error = all_of(group)[0]
        if term.is_over:  # a group that was ending anyway may have lost our cancel
            raise
        if error.may_mend:
            await wait_out(board, cycle, error.message)
        else:
            log.warning("cycle_failed", extra={"cycle": cycle, "reason": error.message})
            failed = CycleFailed(cycle, error.code, error.message, error.hint)
            await term.record(*failed_with(term.state.cycles, failed))
