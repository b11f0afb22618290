"""Having a judge asked: a judge that can't be had ends no cycle.

Owns where it is asked, and how long that is tried. Doesn't know what it is asked.
"""

import logging

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.base.work_item import WorkItem
from jupiterd.cycle.phases.view import RoundView
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.skipped_item import done_without
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.errors import JupiterError

log = logging.getLogger(__name__)

LONGEST_S = 600.0
"""So long a machine or a model that has gone is waited for, since it went. A server that doesn't
answer is given up sooner, by the runner."""


async def hear_judge(
    term: Term, board: ProgressBoard, runner: ItemRunner, view: RoundView, item: WorkItem
) -> WorkCompleted:
    """Return what came of asking a judge, or that it couldn't be had; not recorded yet."""
    only_on = "" if view.judge is None else view.judge.node
    try:
        return await runner.run(
            view.round, item, only_on, is_needed=lambda: False, longest_s=LONGEST_S
        )
    except JupiterError as error:
        log.warning("judge_lost", extra={"reason": error.message})
        return done_without(term, board, view, item, error)
