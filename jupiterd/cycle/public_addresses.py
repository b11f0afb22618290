"""Which addresses of the network are public: what a source may be read from, unless it says more.

Owns that decision. Doesn't resolve names or connect.
"""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Say whether an address lies in the public internet, whatever it is wrapped in."""
    if "%" in text:  # a scope (fe80::1%eth0) is none of a public address
        return False
    try:
        return _is_public(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_public(address: Address) -> bool:
    inner = _inner(address) if isinstance(address, ipaddress.IPv6Address) else None
    if inner is not None:
        return _is_public(inner)
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that one of IPv6 stands for."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
