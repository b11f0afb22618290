"""How each interface of this machine is now: switched on, plugged in, with which addresses.

Owns asking the operating system for that, of those that are out as well (`net.interfaces` tells of
those alone that carry something). Doesn't know what follows.
"""

import socket
from dataclasses import dataclass
from typing import Final

import psutil

_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)


@dataclass(frozen=True)
class InterfaceState:
    """One interface."""

    is_on: bool
    has_link: bool
    """A cable is in, a Wi-Fi is joined. macOS says so of any that is on; it takes the address."""
    addresses: tuple[str, ...]


def interface_states() -> dict[str, InterfaceState]:
    """Return every interface by its name; raises OSError where the system can't be asked."""
    addresses = psutil.net_if_addrs()
    return {
        name: InterfaceState(
            "up" in seen.flags.split(","),
            seen.isup,
            tuple(e.address for e in addresses.get(name, ()) if e.family in _FAMILIES),
        )
        for name, seen in psutil.net_if_stats().items()
    }
