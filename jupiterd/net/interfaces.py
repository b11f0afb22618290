"""Which addresses this machine has, and which one leads to a peer.

Owns asking the operating system. Doesn't know what the addresses are used for, and sends nothing.
"""

import ipaddress
import socket

import psutil

from jupiterd.errors import BadRouteError

_ANY_PORT = 9
"""Connecting a UDP socket looks up the route and sends nothing, so the port doesn't matter."""

LOOPBACK = "127.0.0.1"


def source_address_toward(host: str) -> tuple[str, str]:
    """Return the local address that packets to `host` leave from, and the name of its interface.

    Raises:
        BadRouteError: there is no way to that host, or its name isn't known.
    """
    try:
        family, _, _, _, target = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            address = str(probe.getsockname()[0])
    except OSError as error:
        raise BadRouteError(f"no route from this machine to {host}: {error.strerror}") from error
    return address, interface_of(address)


def interface_of(address: str) -> str:
    """Return the name of the interface that has this address, or an empty string."""
    wanted = _bare(address)
    for name, entries in psutil.net_if_addrs().items():
        if any(_is_ip(entry.family) and _bare(entry.address) == wanted for entry in entries):
            return name
    return ""


def local_addresses(*, loopback_only: bool, interfaces: tuple[str, ...] = ()) -> list[str]:
    """Return the addresses that others may reach this machine at, IPv4 first.

    Loopback addresses only where nothing else is wanted or there is nothing else; IPv6 link-local
    ones never, since they mean something only together with the name of an interface of the other
    machine.
    """
    if loopback_only:
        return [LOOPBACK]
    found = [address for _, address in addresses_by_interface(interfaces)]
    return sorted(found, key=lambda address: ":" in address) or [LOOPBACK]


def told_source_toward(host: str) -> str:
    """Return the local address that packets to `host` leave from, if it is one told to others.

    Empty where it is not (loopback, link-local), where there is no way, or where `host` is a name:
    asking for names takes time.
    """
    try:
        if ipaddress.ip_address(_bare(host)).is_loopback:
            return ""
        source, _ = source_address_toward(host)
    except (ValueError, BadRouteError):
        return ""
    return source if _is_reachable_from_outside(source) else ""


def addresses_by_interface(interfaces: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return (interface, address) for each interface that is up, or of those named; no loopback."""
    states = psutil.net_if_stats()
    return [
        (name, entry.address)
        for name, entries in psutil.net_if_addrs().items()
        if name in states and states[name].isup and (not interfaces or name in interfaces)
        for entry in entries
        if _is_ip(entry.family) and _is_reachable_from_outside(entry.address)
    ]


def _is_ip(family: int) -> bool:
    return family in {socket.AF_INET, socket.AF_INET6}


def _bare(address: str) -> str:
    return address.partition("%")[0]


def _is_reachable_from_outside(address: str) -> bool:
    parsed = ipaddress.ip_address(_bare(address))
    return not parsed.is_loopback and not (parsed.version == 6 and parsed.is_link_local)
