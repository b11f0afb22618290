"""Who is answered next, where more ask than engines answer at a time.

Owns the rule: clients take turns, and each one's requests go in their order; so many are answered
at once, so many more wait, and beyond that one is refused. Doesn't know time, tasks or models.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import ceil
from typing import Final, Generic, TypeVar

Ticket = TypeVar("Ticket", bound=Hashable)

SHORTEST_RETRY_S: Final = 1
LONGEST_RETRY_S: Final = 60


class QueueFullError(Exception):
    """As many wait as may."""


@dataclass
class FairQueue(Generic[Ticket]):
    """The requests to one model."""

    most_running: int
    most_waiting: int
    _running: set[Ticket] = field(default_factory=set[Ticket])
    _waiting: "OrderedDict[str, deque[Ticket]]" = field(
        default_factory=OrderedDict[str, "deque[Ticket]"]
    )
    """By client, whose turn is next first."""

    @property
    def waiting(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def running(self) -> int:
        """Return how many are being answered."""
        return len(self._running)

    @property
    def is_empty(self) -> bool:
        """Say whether nobody is answered, and nobody waits."""
        return not self._running and not self._waiting

    def enter(self, client: str, ticket: Ticket) -> bool:
        """Take a request; say whether it is answered at once.

        Raises:
            QueueFullError: as many wait as may; nothing has changed.
        """
        if len(self._running) < self.most_running:
            self._running.add(ticket)
            return True
        if self.waiting >= self.most_waiting:
            raise QueueFullError
        self._waiting.setdefault(client, deque()).append(ticket)
        return False

    def leave(self, client: str, ticket: Ticket) -> Ticket | None:
        """Let a request go, answered or not; return the one that is answered in its place."""
        if ticket in self._running:
            self._running.remove(ticket)
            return self._next()
        own = self._waiting.get(client)
        if own is not None and ticket in own:
            own.remove(ticket)
            if not own:
                del self._waiting[client]
        return None

    def _next(self) -> Ticket | None:
        if not self._waiting:
            return None
        client, own = self._waiting.popitem(last=False)
        ticket = own.popleft()
        if own:
            self._waiting[client] = own  # at the end: the others come first
        self._running.add(ticket)
        return ticket


def retry_after_s(waiting: int, most_running: int, mean_s: float) -> int:
    """Return when to ask again, in s: once those that wait are probably answered."""
    expected_s = ceil(mean_s * waiting / most_running)
    return max(SHORTEST_RETRY_S, min(LONGEST_RETRY_S, expected_s))
