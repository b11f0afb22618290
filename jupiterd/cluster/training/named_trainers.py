"""Whom people have named to train a run or a cycle.

Owns reading that from what was recorded of either. Doesn't know roles, or who is here.
"""

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.ids import NodeId

NODES = "nodes"
"""In a cycle's settings: ids, with commas between."""
MAX_RANKS = "max_ranks"
"""In the settings of both: no more ranks are wanted; 0: any number."""
OF_CYCLES = frozenset({NODES, MAX_RANKS})


def named_trainers(run: CycleState) -> tuple[NodeId, ...]:
    """Return the nodes that are to train, whatever their roles; empty: anybody."""
    if run.training is not None:
        return run.training.nodes
    named = "" if run.started is None else str(run.started.settings.get(NODES) or "")
    return tuple(NodeId(node) for node in named.split(",") if node)


def most_ranks(run: CycleState) -> int:
    """Return how many ranks are wanted at most; 0: any number."""
    request = run.training or run.started
    return 0 if request is None else int(request.settings.get(MAX_RANKS) or 0)
