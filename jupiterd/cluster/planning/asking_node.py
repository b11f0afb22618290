"""The machine on which somebody asked for a run: there lies what was named on its command line.

Owns where that is recorded. It is for choosing who reads, and for naming who asked; whether a path
may be read is known to each machine alone (`daemon.executor.offered_paths`).
"""

from typing import Final

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.ids import NodeId

ASKED_AT: Final = "asked_at"
"""Of a command's arguments, and of a cycle's settings: a node's id. Older builds' runs lack it."""


def asking_node(run: CycleState) -> NodeId:
    """Return where a cycle, or a data set, was asked for; empty where nobody knows."""
    if run.started is not None:
        return NodeId(str(run.started.settings.get(ASKED_AT) or ""))
    return NodeId("" if run.requested is None else run.requested.asked_at)
