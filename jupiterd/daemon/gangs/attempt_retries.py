"""Whether a round's training tries another attempt after one that failed, and when.

Owns counting attempts that add no checkpoint, the pause between two, and which of the errors that
end an attempt together explains the others. Doesn't know how an attempt runs, or what mends an
error.
"""

import asyncio

from jupiterd.error_groups import all_of
from jupiterd.errors import (
    JupiterError,
    NcclFailedError,
    OutOfMemoryError,
    WorkFailedError,
    WorkStoppedError,
)

MAX_ATTEMPTS_WITHOUT_CHECKPOINT = 5
"""Attempts in a row that add no checkpoint; more means that training can't go on by itself."""

RETRY_S = 1.0
MAX_RETRY_S = 30.0


class AttemptRetries:
    """The failed attempts of one round, for one leader."""

    def __init__(self) -> None:
        self._without_checkpoint, self._wait_s = 0, RETRY_S

    def failed(
        self, error: JupiterError, *, has_other_start: bool, has_advanced: bool, is_regrouped: bool
    ) -> bool:
        """Take in that an attempt failed; return whether another one may succeed.

        has_other_start: the next attempt starts from another checkpoint
        has_advanced: the attempt has added a checkpoint
        is_regrouped: the next gang leaves out another node
        """
        if has_other_start or has_advanced:
            self._without_checkpoint, self._wait_s = 0, 0.0
        if is_regrouped:
            self._wait_s = 0.0
        # One that ran out of memory is tried with less: there is an end to that.
        is_mended = has_other_start or isinstance(error, OutOfMemoryError)
        self._without_checkpoint += not (error.may_mend or is_mended)
        return not error.is_permanent and self._without_checkpoint < MAX_ATTEMPTS_WITHOUT_CHECKPOINT

    async def pause(self) -> None:
        """Wait until the next attempt is due; each pause is twice as long as the one before."""
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(max(2 * self._wait_s, RETRY_S), MAX_RETRY_S)


def root_cause(group: BaseExceptionGroup[JupiterError]) -> JupiterError:
    """Return the error that explains the rest.

    A lost node, or NCCL, comes before what became of workers; a killed one, or one that says what
    it failed of, before those whose sockets to it have broken.
    """

    def how_far_off(error: JupiterError) -> int:
        if not isinstance(error, WorkFailedError) or isinstance(error, NcclFailedError):
            return 0
        return 2 if may_be_consequence(error) else 1

    return min(all_of(group), key=how_far_off)


def may_be_consequence(error: JupiterError) -> bool:
    """Say whether another rank's end may be why a rank's work ended: it doesn't say why."""
    return type(error) in (WorkFailedError, WorkStoppedError)
