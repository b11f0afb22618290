"""What is recorded in place of an item that nobody can do, where the round goes on without it.

Owns that fact. Doesn't decide that a round can do without.
"""

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.base.work_item import WorkItem
from jupiterd.cycle.generation.generation_options import WITHOUT
from jupiterd.cycle.phases.view import RoundView
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import JupiterError


def done_without(
    term: Term, board: ProgressBoard, view: RoundView, item: WorkItem, error: JupiterError
) -> WorkCompleted:
    """Return that an item left nothing behind, and why; people see it while the round goes on."""
    board.explain(view.cycle, f"{error.message}; the round does without")
    steering, phase = term.cycle(view.cycle).steering, str(item.phase)
    return WorkCompleted(
        cycle=view.cycle,
        round=view.round,
        phase=phase,
        item=steering.recorded_id(view.round, phase, item.id),
        node=term.self_id,
        outputs={},
        summary={WITHOUT: error.message},
    )
