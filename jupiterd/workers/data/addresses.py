"""Which addresses of the network may be asked: public ones, unless a source allows others.

Owns the decision, and the way from a host's name to addresses that were decided on: what is
connected to is what was looked at, so that DNS can't answer differently in between.
"""

import ipaddress
import socket

from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_ADDRESSES = 4

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Say whether an address lies in the public internet, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def checked_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return the addresses of a host, best first.

    Raises:
        UnreadableError: it has none, or one of them isn't public and that isn't allowed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnreadableError(SkipReason.UNREACHABLE) from error
    # A scope (fe80::1%eth0) is none of a public address.
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        is_scoped = "%" in address
        if not allow_private and (is_scoped or not is_public(ipaddress.ip_address(address))):
            raise UnreadableError(SkipReason.PRIVATE_ADDRESS)
    return addresses[:MAX_ADDRESSES]


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that one of IPv6 stands for."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
