"""Whether another daemon runs with this node's key: its state folder, or all of it, was copied.

Owns what proves it, and that it was seen. Doesn't know how daemons meet, or what follows.

1. Whoever greets an address that shows its own key draws a number for it. A daemon that is greeted
   with its own key and doesn't know the number is another one than the caller, and says so: both
   know then. A copy of a running daemon's memory is noticed too, for the number is new each time.
2. Each start draws the name of a writer. An entry in that name which isn't held here was written
   by a copy of this daemon's memory: a writer's own entries are held before they are sent.

Each of them falls silent: nobody can say which one is the original. Where only one of them is met
any more, for OVER_S, it speaks again; a copy of the memory, which has written in our name, is for
good. The time is handed in.
"""

import math
from collections import deque
from typing import Final

from jupiterd.cluster.ledger.ledger import Entry, EntryWriter, Ledger

MAX_GREETINGS = 256
"""An address that has shown itself to be ours isn't greeted again."""

AGAIN_S: Final = 2.0
"""Another daemon with our key is greeted so often."""

OVER_S: Final = 10.0
"""One that wasn't met for so long is gone."""


class CloneWatch:
    """What this daemon has seen of others with its key, from its start to its end."""

    def __init__(self) -> None:
        self._greetings: deque[str] = deque(maxlen=MAX_GREETINGS)
        """The numbers of our last greetings; one may arrive long after we gave it up."""
        self._has_written = False
        self._met_s = math.inf
        """When it was met last; never, where its writing alone tells of it: that doesn't end."""
        self.seen_at = ""
        """Where another daemon with this node's key was seen first; empty where none was."""

    @property
    def is_seen(self) -> bool:
        """Say whether this node's key is used twice: then it neither leads nor answers members."""
        return bool(self.seen_at)

    def greets(self, number: str) -> None:
        """Take note that we greet somebody with our key."""
        self._greetings.append(number)

    def is_greeted_by_itself(self, number: str, where: str) -> bool:
        """Say whether who greets us with our key is this daemon."""
        is_itself = number in self._greetings
        if not is_itself:
            self._note(where)
        return is_itself

    def is_answered_by_itself(self, is_caller: bool, where: str) -> bool:  # noqa: FBT001 - its word
        """Say whether who answered with our key is this daemon, as it says itself."""
        if not is_caller:
            self._note(where)
        return is_caller

    def met(self, now_s: float) -> None:
        """Take note that another daemon with our key was met."""
        self._met_s = math.inf if self._has_written else now_s

    def is_over(self, now_s: float) -> bool:
        """Say, once, that the other one has gone: then nothing was seen any more."""
        if not self.seen_at or now_s - self._met_s < OVER_S:
            return False
        self.seen_at = ""
        return True

    def is_ours(self, ledger: Ledger, writer: EntryWriter, entry: Entry) -> bool:
        """Say whether a signed entry in the name of `writer`, which is ours, is indeed ours."""
        is_held = entry.index < ledger.chain_end(writer)[0] and not ledger.is_twin(entry)
        if not is_held:
            self._has_written, self._met_s = True, math.inf
            self._note(f"entry {entry.index} of the ledger")
        return is_held

    def _note(self, where: str) -> None:
        self.seen_at = self.seen_at or where
