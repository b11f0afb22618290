"""Which addresses are public, of this machine alone, of one link, or of a group: one table.

Owns the ranges, as IANA's registries of special-purpose addresses had them in November 2026. Python
has a table of its own, which differs from one patch release to the next: what a source may be read
from, and what a key may be shown to, must not. Doesn't resolve names or connect.

https://www.iana.org/assignments/iana-ipv4-special-registry
https://www.iana.org/assignments/iana-ipv6-special-registry
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
_Ranges = tuple[IPv4Network | IPv6Network, ...]


def _ranges(texts: Iterable[str]) -> _Ranges:
    return tuple(map(ip_network, texts))


_LOOPBACK: Final = _ranges(("127.0.0.0/8", "::1/128"))
_LINK_LOCAL: Final = _ranges(("169.254.0.0/16", "fe80::/10"))
_MULTICAST: Final = _ranges(("224.0.0.0/4", "ff00::/8"))

_NOT_PUBLIC_IPV4: Final = _ranges((
    "0.0.0.0/8",        # this network
    "10.0.0.0/8",       # private
    "100.64.0.0/10",    # shared by the customers of a provider
    "127.0.0.0/8",      # loopback
    "169.254.0.0/16",   # link-local
    "172.16.0.0/12",    # private
    "192.0.0.0/24",     # assigned to protocols
    "192.0.2.0/24",     # documentation
    "192.88.99.0/24",   # relays of 6to4, given up
    "192.168.0.0/16",   # private
    "198.18.0.0/15",    # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",   # documentation
    "224.0.0.0/3",      # multicast, reserved, broadcast
))  # fmt: skip

_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
"""What is given out to hosts of the internet at all; of this these aren't public:"""
_NOT_PUBLIC_IPV6: Final = _ranges((
    "2001::/23",        # assigned to protocols, benchmarks among them; Teredo is unwrapped before
    "2001:db8::/32",    # documentation
    "3fff::/20",        # documentation
))  # fmt: skip

_NAT64: Final = IPv6Network("64:ff9b::/96")
_TEREDO: Final = IPv6Network("2001::/32")
_6TO4: Final = IPv6Network("2002::/16")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


def is_public(text: str) -> bool:
    """Say whether an address lies in the public internet, whatever it is wrapped in."""
    if "%" in text:  # a scope (fe80::1%eth0) is none of a public address
        return False
    address = _read(text)
    if address is None:
        return False
    inner = _unwrapped(address)
    if isinstance(inner, IPv4Address):
        return not _is_in(inner, _NOT_PUBLIC_IPV4)
    return inner in _GLOBAL_IPV6 and not _is_in(inner, _NOT_PUBLIC_IPV6)


def is_loopback(text: str) -> bool:
    """Say whether an address is of this machine alone; False where it is no address."""
    return _is_of(text, _LOOPBACK)


def is_link_local(text: str) -> bool:
    """Say whether an address is valid on its own link alone; False where it is no address."""
    return _is_of(text, _LINK_LOCAL)


def is_multicast(text: str) -> bool:
    """Say whether an address is a group's; False where it is no address."""
    return _is_of(text, _MULTICAST)


def _is_of(text: str, ranges: _Ranges) -> bool:
    address = _read(text)
    return address is not None and _is_in(address, ranges)


def _read(text: str) -> Address | None:
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _is_in(address: Address, ranges: _Ranges) -> bool:
    return any(address in each for each in ranges)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address that one of IPv6 stands for, or itself."""
    number = int(address)
    if address in _NAT64 or address in _MAPPED:
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _6TO4:
        return IPv4Address((number >> 80) & 0xFFFFFFFF)
    if address in _TEREDO:
        return IPv4Address(~number & 0xFFFFFFFF)  # the client's, with its bits turned over
    return address
