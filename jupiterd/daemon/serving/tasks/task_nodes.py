"""Which members may be asked what tasks ask a model: those that have it, and nothing better to do.

Pure but for looking which packages are installed. Doesn't know how they are asked.
"""

from jupiterd.cluster.serving.routing import ServingNode
from jupiterd.daemon.serving.tasks.batch_service import NEEDED
from jupiterd.hardware.probe import installed


def can_evaluate() -> bool:
    """Say whether this machine has what it takes."""
    return set(NEEDED) <= set(installed(NEEDED))


def why_not_asked(node: ServingNode, *, can_evaluate: bool) -> str:
    """Return why a member isn't asked; empty where it is."""
    if node.absence:
        return node.absence
    if not node.holds:
        return "doesn't have the model"
    if not can_evaluate:
        return "lacks jupiterd[evaluation], or runs an older Jupiter"
    if node.is_drained:
        return "is to do no work"
    return "trains" if node.serving.trains else ""
