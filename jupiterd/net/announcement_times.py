"""When the machines of this network last announced each of their addresses.

Owns a bounded memory of those times, and the set of addresses to query again. Doesn't know how
announcements arrive (`mdns`), or who uses the times (`daemon.links.unreachable_peers`).
"""

from collections.abc import Callable
from typing import Final

from jupiterd.ports import Address

MAX_ADDRESSES: Final = 256
"""As many addresses as a daemon tries to reach; any machine can announce any number of them."""

NEVER_S: Final = float("-inf")


class AnnouncementTimes:
    """The last announcement of each address; beyond MAX_ADDRESSES it drops the oldest one."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._heard_s: dict[Address, float] = {}
        self.doubted: frozenset[Address] = frozenset()
        """Addresses that don't answer: `mdns` asks now and then whether they are still
        announced."""

    def note(self, address: Address, age_s: float = 0.0) -> None:
        """Record that an address was announced `age_s` seconds ago."""
        heard_s = max(self._now_s() - age_s, self.heard_s(address))
        self._heard_s.pop(address, None)
        self._heard_s[address] = heard_s
        if len(self._heard_s) > MAX_ADDRESSES:
            del self._heard_s[next(iter(self._heard_s))]

    def heard_s(self, address: Address) -> float:
        """Return when an address was last announced, on the clock `now_s`; NEVER_S: never."""
        return self._heard_s.get(address, NEVER_S)
