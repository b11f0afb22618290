"""Limits how many connections each address may hold at the open port.

Owns the counts. Doesn't know any socket, or who is a member: the caller tells which addresses are
members'. Members' addresses have separate places, so that a stranger can't take them.
"""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from jupiterd.errors import TooOftenError

EACH_STRANGER: Final = 16
"""Most connections of one address at once; a daemon that looks for others holds two."""

ALL_STRANGERS: Final = 256
"""Most connections of all addresses that aren't members': more would only use up this process's
file descriptors."""

EACH_MEMBER: Final = 64
"""Most connections of one member's address: several daemons may run there, and older ones hold
three connections each."""

ALL_MEMBERS: Final = 640
"""Most connections of all members' addresses; with all strangers' they still fit into the server
behind the proxy."""

LEFT_FOR_FEW: Final = 128
FEW: Final = 8
"""An address that holds `FEW` connections or more can't take the last `LEFT_FOR_FEW` places, so
that no member holds them all."""


class ConnectionLimits:
    """How many connections each address holds."""

    def __init__(self, is_members: Callable[[str], bool]) -> None:
        """`is_members` tells whether a member is known to use that address."""
        self._is_members = is_members
        self._of_strangers: Counter[str] = Counter()
        self._of_members: Counter[str] = Counter()

    @contextmanager
    def hold(self, host: str) -> Generator[None]:
        """Hold one place for an address; raises TooOftenError if it has none left."""
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
