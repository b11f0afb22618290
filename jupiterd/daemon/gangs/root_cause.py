"""Which of the errors that end an attempt together explains the others.

Owns that choice. Doesn't know gangs.
"""

from jupiterd.error_groups import all_of
from jupiterd.errors import JupiterError, NcclFailedError, WorkFailedError


def deepest(group: BaseExceptionGroup[JupiterError]) -> JupiterError:
    """Return the most telling error: a node that has gone, or NCCL, explains what workers said."""

    def is_its_consequence(error: JupiterError) -> bool:
        return isinstance(error, WorkFailedError) and not isinstance(error, NcclFailedError)

    return min(all_of(group), key=is_its_consequence)
