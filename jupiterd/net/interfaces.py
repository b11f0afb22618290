"""Reads this machine's addresses, ranks them, and finds the one that leads to a peer.

Owns the questions to the operating system. Doesn't know what the addresses are used for, and sends
no packet.

A link-local IPv6 address always carries the name of its interface here: `fe80::1%eth0`.
"""

import ipaddress
import math
import socket
import time
from contextlib import suppress
from itertools import groupby

import psutil

from jupiterd.address_ranges import is_loopback
from jupiterd.errors import BadRouteError
from jupiterd.net.interface_changes import InterfaceChanges
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.scopes import is_link_local, with_named_scope, without_scope
from jupiterd.ports import Address

_ANY_PORT = 9
"""Connecting a UDP socket looks up the route and sends nothing, so any port will do."""

LOOPBACK = "127.0.0.1"

MAX_ANNOUNCED_OF_ONE = 2
"""Most IPv4 addresses of one interface that this node announces, and most routable IPv6 ones."""

SHARED_S = 0.5
"""How long callers share one reading, in s: a reading takes about 0.5 ms, and three callers read
every second or more often."""

ANYHOW_S = 10.0
"""The interfaces are read at least this often, in s, even if the system reports no change."""

MAX_SCOPES = 4
"""Most interfaces on which a link-local address without a scope is tried."""


def source_address_toward(host: str) -> tuple[str, str]:
    """Return the source address of packets to `host`, and the name of its interface.

    Raises:
        BadRouteError: there is no route to that host, or its name isn't known.
    """
    try:
        family, _, _, _, target = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            address = _scoped(probe.getsockname())
    except OSError as error:
        raise BadRouteError(f"no route from this machine to {host}: {error.strerror}") from error
    return address, interface_of(address)


def interface_of(address: str) -> str:
    """Return the name of the interface that has this address; empty if it can't be found."""
    wanted, _, scope = address.partition("%")
    if scope:
        return scope
    with suppress(OSError):  # the process may be out of file descriptors
        for name, entries in psutil.net_if_addrs().items():
            if any(
                _is_ip(seen.family) and without_scope(seen.address) == wanted for seen in entries
            ):
                return name
    return ""


def addresses_of(interface: str) -> list[str]:
    """Return the IP addresses of an interface; empty if the system can't be asked."""
    with suppress(OSError):
        entries = psutil.net_if_addrs().get(interface, [])
        return [seen.address for seen in entries if _is_ip(seen.family)]
    return []


def local_addresses(*, loopback_only: bool, interfaces: tuple[str, ...] = ()) -> list[str]:
    """Return the addresses at which others may reach this machine, the best first.

    Thunderbolt comes before Ethernet, Wi-Fi, VPNs and containers; on one interface IPv4 comes
    before IPv6, and link-local last. Loopback is the answer only if the caller wants it or no other
    address exists.
    """
    if loopback_only:
        return [LOOPBACK]
    found = [
        address
        for name, entries in groupby(_ranked(interfaces), key=lambda pair: pair[0])
        for address in _announced_of_one(name, [address for _, address in entries])
    ]
    return found or [LOOPBACK]


def every_address() -> list[str]:
    """Return all addresses of this machine except loopback, the best first, without scopes.

    Raises:
        OSError: the system can't be asked.
    """
    return [without_scope(address) for _, address in _ranked(())]


def link_scopes(interfaces: tuple[str, ...] = ()) -> list[str]:
    """Return the physical interfaces that have a link-local IPv6 address, the best first.

    Empty if the system can't be asked.
    """
    with suppress(OSError):
        found = [
            name
            for name, address in _ranked(interfaces)
            if is_link_local(address) and kind_of(name).is_physical
        ]
        return list(dict.fromkeys(found))
    return []


def seen_from_here(address: Address) -> list[Address]:
    """Return the addresses to try for an address that another machine named.

    A link-local address without a scope may lie on any link: it is tried on the best `MAX_SCOPES`
    interfaces. Any other address is returned alone, with its scope by name.
    """
    if not is_link_local(address.host) or "%" in address.host:
        return [Address(with_named_scope(address.host), address.port)]
    return [
        Address(f"{address.host}%{scope}", address.port) for scope in link_scopes()[:MAX_SCOPES]
    ]


def announced_source_toward(host: str) -> str:
    """Return the source address of packets to `host`, if this node could announce it.

    Empty if it is loopback, if there is no route, or if `host` is a name: a look-up of names takes
    time.
    """
    try:
        ipaddress.ip_address(without_scope(host))
        if is_loopback(host):
            return ""
        source, _ = source_address_toward(host)
    except (ValueError, BadRouteError):
        return ""
    return source if _is_reachable_from_outside(source) else ""


def addresses_by_interface(interfaces: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return (interface, address) for the interfaces that are up, without loopback.

    Args:
        interfaces: names of the interfaces to read; empty for all.

    Raises:
        OSError: the system can't be asked.
    """
    states = psutil.net_if_stats()
    return [
        (name, entry.address)
        for name, entries in psutil.net_if_addrs().items()
        if name in states and states[name].isup and (not interfaces or name in interfaces)
        for entry in entries
        if _is_ip(entry.family) and _is_reachable_from_outside(entry.address)
    ]


def missing_of(interfaces: tuple[str, ...]) -> str:
    """Return a message that names the given interfaces which don't exist; empty if all exist."""
    here = psutil.net_if_addrs() if interfaces else {}
    missing = [name for name in interfaces if name not in here]
    if not missing:
        return ""
    return f"no interface is called {', '.join(missing)}; here are {', '.join(sorted(here))}"


def recent_addresses(interfaces: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return `addresses_by_interface` as of `SHARED_S` ago at most, for callers that poll.

    On a system that reports changes, the interfaces are read after a report, and every `ANYHOW_S`
    at least.
    """
    found = _recent.read(time.monotonic())
    return [pair for pair in found if not interfaces or pair[0] in interfaces]


class Recent:
    """The last reading of the interfaces, which all polling callers share."""

    def __init__(self) -> None:
        self._news: InterfaceChanges | None = None
        self._found: list[tuple[str, str]] = []
        self._checked_s = self._read_s = -math.inf

    def read(self, now_s: float) -> list[tuple[str, str]]:
        """Return (interface, address) pairs; raises OSError if the system can't be asked."""
        if now_s - self._checked_s >= SHARED_S:
            self._news = self._news or InterfaceChanges()
            if self._news.may_have_come() or now_s - self._read_s >= ANYHOW_S:
                self._read_s = -math.inf  # after a failed reading, read again at the next call
                self._found, self._read_s = addresses_by_interface(), now_s
            self._checked_s = now_s
        return self._found


_recent = Recent()


def _ranked(interfaces: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return (interface, address), the best interfaces first, on each the best address first."""
    return sorted(
        addresses_by_interface(interfaces),
        key=lambda pair: (kind_of(pair[0]), pair[0], ":" in pair[1], is_link_local(pair[1])),
    )


def _announced_of_one(name: str, ranked: list[str]) -> list[str]:
    """Return an interface's addresses to announce: a few, as IPv6 privacy extensions add many."""
    ipv4 = [address for address in ranked if ":" not in address]
    routable = [address for address in ranked if ":" in address and not is_link_local(address)]
    link_local = [address for address in ranked if is_link_local(address)]
    announced_local = link_local[:1] if kind_of(name).is_physical else []
    return [*ipv4[:MAX_ANNOUNCED_OF_ONE], *routable[:MAX_ANNOUNCED_OF_ONE], *announced_local]


def _is_ip(family: int) -> bool:
    return family in {socket.AF_INET, socket.AF_INET6}


def _scoped(name: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """Return the address of a socket name, with its interface if it is link-local."""
    host = without_scope(name[0])
    scope = name[3] if len(name) == 4 else 0
    return with_named_scope(f"{host}%{scope}") if scope and is_link_local(host) else host


def _is_reachable_from_outside(address: str) -> bool:
    return not is_loopback(address)
