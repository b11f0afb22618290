"""When the machines of this network last announced each address where they answer.

Owns that memory, up to a bound, and which announcements are to be asked for anew. Doesn't know how
they are heard (`mdns`), or what follows (`daemon.links.unreachable_peers`).
"""

from collections.abc import Callable
from typing import Final

from jupiterd.ports import Address

MAX_ADDRESSES: Final = 256
"""As many as a daemon tries; anybody on the network can announce any number."""

NEVER_S: Final = float("-inf")


class AnnouncementTimes:
    """What was announced, by address; the one heard longest ago is forgotten first."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._heard_s: dict[Address, float] = {}
        self.doubted: frozenset[Address] = frozenset()
        """Those that don't answer: whether they are still announced is asked now and then."""

    def note(self, address: Address, age_s: float = 0.0) -> None:
        """Take note that an address was announced so many seconds ago."""
        heard_s = max(self._now_s() - age_s, self.heard_s(address))
        self._heard_s.pop(address, None)
        self._heard_s[address] = heard_s
        if len(self._heard_s) > MAX_ADDRESSES:
            del self._heard_s[next(iter(self._heard_s))]

    def heard_s(self, address: Address) -> float:
        """Return when an address was announced last."""
        return self._heard_s.get(address, NEVER_S)
