"""A checkpoint that turned out to be damaged: the branch goes on from the checkpoint before it.

Owns what the leader records of it. Doesn't know how damage is found (`checkpoint_integrity`), or
how a branch is found (`progress_tree`).
"""

import logging

from jupiterd.cluster.facts.facts import BranchSuspended
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.ids import CycleId, short

log = logging.getLogger(__name__)


async def suspend_damaged(
    term: Term,
    board: ProgressBoard,
    reach: ArtifactReach,
    cycle: CycleId,
    artifact: str,
    reason: str,
) -> None:
    """Record that a branch is suspended that ends in a damaged checkpoint, and show why.

    The leader of this term takes it for damaged until the term ends.
    """
    reach.damaged.add(artifact)
    state = term.cycle(cycle)
    if artifact not in state.suspended:
        edit = state.suspension_edit(artifact) + 1
        await term.record(
            BranchSuspended(cycle, artifact, is_suspended=True, edit=edit, reason=reason)
        )
    log.warning("checkpoint_set_aside", extra={"artifact": short(artifact), "reason": reason})
    board.explain(cycle, f"{reason}; going on from the checkpoint before it")
