"""The networks that this machine is in.

Owns reading them from the operating system. Doesn't judge them.
"""

import ipaddress
import socket
from dataclasses import dataclass

import psutil

from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import addresses_by_interface
from jupiterd.net.scopes import is_link_local


@dataclass(frozen=True)
class Network:
    """One IPv4 network on one interface."""

    interface: str
    kind: InterfaceKind
    address: str
    """This machine's address in it."""
    subnet: str
    """Such as `192.168.1.0/24`."""
    mbit_per_s: int = 0
    """The negotiated speed of the interface; 0: unknown."""


def networks(interfaces: tuple[str, ...] = ()) -> list[Network]:
    """Return the IPv4 networks that may hold other machines: no VPNs and no containers."""
    speeds = psutil.net_if_stats()
    return [
        Network(name, kind_of(name), address, subnet, speeds[name].speed if name in speeds else 0)
        for name, address in addresses_by_interface(interfaces)
        if ":" not in address and kind_of(name).is_physical and not is_link_local(address)
        for subnet in [_subnet(name, address)]
    ]


def _subnet(interface: str, address: str) -> str:
    entries = psutil.net_if_addrs().get(interface, [])
    masks = [e.netmask for e in entries if e.family == socket.AF_INET and e.address == address]
    mask = next((mask for mask in masks if mask), "255.255.255.0")
    return str(ipaddress.ip_network(f"{address}/{mask}", strict=False))
