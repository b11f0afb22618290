"""Which addresses this machine has, which are better, and which one leads to a peer.

Owns asking the operating system. Doesn't know what the addresses are used for, and sends nothing.

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
"""Connecting a UDP socket looks up the route and sends nothing, so the port doesn't matter."""

LOOPBACK = "127.0.0.1"

MAX_ANNOUNCED_OF_ONE = 2
"""IPv4 addresses of one interface that others are told, and as many routable IPv6 ones."""

SHARED_S = 0.5
"""Reading all interfaces takes about half a millisecond, and three look every second or sooner."""

ANYHOW_S = 10.0
"""They are read so often though the system has told of no change."""

MAX_SCOPES = 4
"""Links on which a link-local address is tried that may lie on any of them."""


def source_address_toward(host: str) -> tuple[str, str]:
    """Return the local address that packets to `host` leave from, and the name of its interface.

    Raises:
        BadRouteError: there is no way to that host, or its name isn't known.
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
    """Return the name of the interface that has this address; empty where it can't be told."""
    wanted, _, scope = address.partition("%")
    if scope:
        return scope
    with suppress(OSError):  # no file may be left to ask the system with
        for name, entries in psutil.net_if_addrs().items():
            if any(
                _is_ip(seen.family) and without_scope(seen.address) == wanted for seen in entries
            ):
                return name
    return ""


def addresses_of(interface: str) -> list[str]:
    """Return the IP addresses of an interface; none where the system can't say."""
    with suppress(OSError):
        entries = psutil.net_if_addrs().get(interface, [])
        return [seen.address for seen in entries if _is_ip(seen.family)]
    return []


def local_addresses(*, loopback_only: bool, interfaces: tuple[str, ...] = ()) -> list[str]:
    """Return the addresses that others may reach this machine at, the best first.

    Thunderbolt before Ethernet before Wi-Fi before VPNs before containers; on one interface IPv4
    before IPv6, link-local last. Loopback only where nothing else is wanted or there is nothing
    else.
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
    """Return all addresses of this machine but loopback, the best first: where it may speak from.

    Raises:
        OSError: the system can't be asked.
    """
    return [without_scope(address) for _, address in _ranked(())]


def link_scopes(interfaces: tuple[str, ...] = ()) -> list[str]:
    """Return the interfaces with a link-local IPv6 address that may lead to a peer, best first.

    None where the system can't say.
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
    """Return the ways to try an address that somebody told us.

    A link-local one without a scope may lie on any of our links: it is tried on each, the best
    interfaces first. Everything else is what it is.
    """
    if not is_link_local(address.host) or "%" in address.host:
        return [Address(with_named_scope(address.host), address.port)]
    return [
        Address(f"{address.host}%{scope}", address.port) for scope in link_scopes()[:MAX_SCOPES]
    ]


def announced_source_toward(host: str) -> str:
    """Return the local address that packets to `host` leave from, if it is one told to others.

    Empty where it is not (loopback), where there is no way, or where `host` is a name: asking for
    names takes time.
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
    """Return (interface, address) for each interface that is up, or of those named; no loopback."""
    states = psutil.net_if_stats()
    return [
        (name, entry.address)
        for name, entries in psutil.net_if_addrs().items()
        if name in states and states[name].isup and (not interfaces or name in interfaces)
        for entry in entries
        if _is_ip(entry.family) and _is_reachable_from_outside(entry.address)
    ]


def missing_of(interfaces: tuple[str, ...]) -> str:
    """Say which of these names no interface of this machine has just now; empty where all are."""
    here = psutil.net_if_addrs() if interfaces else {}
    missing = [name for name in interfaces if name not in here]
    if not missing:
        return ""
    return f"no interface is called {', '.join(missing)}; here are {', '.join(sorted(here))}"


def recent_addresses(interfaces: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return the same for those that look again and again: as it was half a second ago at most.

    Where the system tells of changes it is asked when it has, and every ten seconds all the same.
    """
    found = _recent.read(time.monotonic())
    return [pair for pair in found if not interfaces or pair[0] in interfaces]


class Recent:
    """The last reading, shared by all that look."""

    def __init__(self) -> None:
        self._news: InterfaceChanges | None = None
        self._found: list[tuple[str, str]] = []
        self._checked_s = self._read_s = -math.inf

    def read(self, now_s: float) -> list[tuple[str, str]]:
        """Return what there is; raises OSError where the system can't be asked."""
        if now_s - self._checked_s >= SHARED_S:
            self._news = self._news or InterfaceChanges()
            if self._news.may_have_come() or now_s - self._read_s >= ANYHOW_S:
                self._read_s = -math.inf  # what was told of is looked for until it can be read
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
    """Return what others are told of one interface: a few, for privacy's sake has many in IPv6."""
    ipv4 = [address for address in ranked if ":" not in address]
    routable = [address for address in ranked if ":" in address and not is_link_local(address)]
    link_local = [address for address in ranked if is_link_local(address)]
    announced_local = link_local[:1] if kind_of(name).is_physical else []
    return [*ipv4[:MAX_ANNOUNCED_OF_ONE], *routable[:MAX_ANNOUNCED_OF_ONE], *announced_local]


def _is_ip(family: int) -> bool:
    return family in {socket.AF_INET, socket.AF_INET6}


def _scoped(name: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """Return a socket's own address, with the interface where it is link-local."""
    host = without_scope(name[0])
    scope = name[3] if len(name) == 4 else 0
    return with_named_scope(f"{host}%{scope}") if scope and is_link_local(host) else host


def _is_reachable_from_outside(address: str) -> bool:
    return not is_loopback(address)
