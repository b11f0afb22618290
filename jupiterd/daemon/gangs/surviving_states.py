"""What the survivors of an attempt have saved: the last step that any of them has finished.

Owns how long they get for it, and which of their states is taken. Doesn't know how it is written
(workers), nor what is recorded of it.
"""

from collections.abc import Sequence

from jupiterd.cycle.training.plan import ModelShape
from jupiterd.cycle.training.save_clock import checkpoint_bytes
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.work_events import CheckpointStored, SaveRequest
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId

SLOWEST_BYTES_PER_S = 50_000_000
"""The slowest disk allowed for: the checkpoint is written, read again for its hash, and synced."""

LEAST_S = 5.0


def save_request_for(shape: ModelShape, after_step: int) -> SaveRequest:
    """Return the order to save the last finished step, with a time limit for this model's size."""
    return SaveRequest(after_step, LEAST_S + checkpoint_bytes(shape) / SLOWEST_BYTES_PER_S)


async def latest(
    term: Term,
    reach: ArtifactReach,
    saved: Sequence[tuple[NodeId, CheckpointStored]],
    joined_before_step: int = 0,
) -> CheckpointStored | None:
    """Return the latest checkpoint that the survivors saved, once two nodes hold it if possible.

    All ranks have equal weights after the same step, so most often two nodes hold it already. A
    node that joins fetches the second copy once the gang trains: this function doesn't wait for a
    second copy of a step before `joined_before_step`. None: no survivor saved a checkpoint, or its
    only holder is gone.
    """
    if not saved:
        return None
    best = max((made for _, made in saved), key=lambda made: (made.progress.step, made.artifact))
    is_fetched = best.progress.step < joined_before_step
    holders = [node for node, made in saved if made.artifact == best.artifact]
    try:
        if len(holders) == 1 and not (is_fetched and holders[0] == term.self_id):
            await reach.keep_two_copies(best.artifact, holders[0])
    except JupiterError:  # its only holder has gone, too
        return None
    return best
