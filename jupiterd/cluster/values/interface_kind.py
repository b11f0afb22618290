"""What kinds of network interface there are, the best first.

Owns their order and their names. Doesn't know which interface is of which kind.
"""

from enum import IntEnum
from typing import Final

LOOPBACK: Final = "loopback"
"""What people read of a way between daemons of one machine; it counts as the best kind."""


def is_loopback(target: str) -> bool:
    """Say whether an address, with or without a port, leads to the machine itself."""
    return target.startswith(("127.", "::1", "[::1]"))


class InterfaceKind(IntEnum):
    """The smaller, the better; the numbers go over the wire, so they keep their meaning."""

    THUNDERBOLT = 1
    ETHERNET = 2
    WIFI = 3
    VPN = 4
    CONTAINER = 5
    """Bridges and cables of containers and virtual machines, and whatever else leads nowhere."""

    @classmethod
    def numbered(cls, number: int) -> "InterfaceKind":
        """Return the kind that another machine names; one that isn't known is the last."""
        return next((kind for kind in cls if kind == number), cls.CONTAINER)

    @property
    def label(self) -> str:
        """What people read."""
        return _LABELS[self]

    @property
    def is_physical(self) -> bool:
        """Say whether it leads out of the machine by itself."""
        return self <= InterfaceKind.WIFI


_LABELS = {
    InterfaceKind.THUNDERBOLT: "Thunderbolt",
    InterfaceKind.ETHERNET: "Ethernet",
    InterfaceKind.WIFI: "Wi-Fi",
    InterfaceKind.VPN: "VPN",
    InterfaceKind.CONTAINER: "container",
}
