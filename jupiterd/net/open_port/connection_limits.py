"""How many connections each address may hold at the open port.

Owns the count. Doesn't know any socket, or who is a member: it is told which addresses are
members'. Those have places of their own, so that no stranger takes one of theirs.
"""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from jupiterd.errors import TooOftenError

EACH_STRANGER: Final = 16
"""Connections of one address at once: a daemon that looks for others holds two."""

ALL_STRANGERS: Final = 256
"""Of all addresses that aren't members': more would only take this process's descriptors."""

EACH_MEMBER: Final = 64
"""Of one address where members answer: several daemons, older ones with three connections each."""

ALL_MEMBERS: Final = 640
"""Of all such addresses: beside all strangers' they leave room in the server behind."""

LEFT_FOR_FEW: Final = 128
FEW: Final = 8
"""The last places go to addresses that hold fewer than this: no member has all of them."""


class ConnectionLimits:
    """Who holds how many."""

    def __init__(self, is_members: Callable[[str], bool]) -> None:
        """`is_members` says whether a member is known to answer at that address."""
        self._is_members = is_members
        self._of_strangers: Counter[str] = Counter()
        self._of_members: Counter[str] = Counter()

    @contextmanager
    def hold(self, host: str) -> Generator[None]:
        """Hold one place for an address; raises TooOftenError where it has none left."""
        held = self._room_for(host)
        held[host] += 1
        try:
            yield
        finally:
            held[host] -= 1
            if not held[host]:
                del held[host]

    def _room_for(self, host: str) -> Counter[str]:
        if self._is_members(host):
            if self._of_members[host] >= EACH_MEMBER:
                raise TooOftenError(f"{host} holds {EACH_MEMBER} connections")
            reserved = 0 if self._of_members[host] < FEW else LEFT_FOR_FEW
            if self._of_members.total() >= ALL_MEMBERS - reserved:
                raise TooOftenError(f"members hold {self._of_members.total()} connections")
            return self._of_members
        if self._of_strangers[host] >= EACH_STRANGER:
            raise TooOftenError(f"{host} holds {EACH_STRANGER} connections")
        if self._of_strangers.total() >= ALL_STRANGERS:
            raise TooOftenError(f"strangers hold {ALL_STRANGERS} connections")
        return self._of_strangers
