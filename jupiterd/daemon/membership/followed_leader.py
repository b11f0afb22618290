"""Whom this node follows just now, and waiting until it does: orders come from nobody else.

Owns the waiting. Doesn't know who leads (`cluster.membership.election`), what is ordered, or the
rule (`cluster.membership.fencing`).
"""

import asyncio
import contextlib

from jupiterd.cluster.membership.fencing import check_followed, is_followed
from jupiterd.ids import NodeId

HEARD_WITHIN_S = 1.0
"""A new leader beats to everybody at once; its first order may be here before."""


class FollowedLeader:
    """The leader, and the highest term known."""

    def __init__(self) -> None:
        self.leader: NodeId | None = None
        self.term = 0
        self._turned = asyncio.Event()

    def note(self, leader: NodeId | None, term: int) -> None:
        """Take up who leads, and whoever waits for that looks again."""
        if (leader, term) != (self.leader, self.term):
            self.leader, self.term = leader, term
            self._turned.set()
            self._turned = asyncio.Event()

    async def check(self, caller: NodeId, term: int | None = None) -> None:
        """Return once this node follows the caller; one of an old term isn't waited for.

        term: in which it says that it leads; None where it doesn't say

        Raises:
            RefusedError: this node doesn't follow it.
        """
        if term is None or term >= self.term:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARD_WITHIN_S):
                    while not is_followed(caller, term, self.leader, self.term):
                        await self._turned.wait()
        check_followed(caller, term, self.leader, self.term)
