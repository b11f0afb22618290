"""IPv6 addresses that mean something on one link alone, and the interface that names the link.

Owns writing such an address with its scope and without. A scope is the name of an interface of this
machine, so it is never told to others: they have their own names for the same wire.
"""

import re
import socket

from jupiterd import address_ranges


def is_link_local(host: str) -> bool:
    """Say whether a host is an IPv6 address that is valid on its own link alone."""
    return ":" in host and address_ranges.is_link_local(host)


def without_scope(host: str) -> str:
    """Return the host as another machine may be told of it."""
    return host.partition("%")[0]


def host_in(text: str) -> str:
    """Return the host of HOST:PORT or [IPv6]:PORT."""
    return text.rpartition(":")[0].strip("[]")


def without_scope_in(text: str) -> str:
    """Return host and port as another machine may be told of them."""
    return re.sub("%[^]]*", "", text)


def in_scope(host: str, interface: str) -> str:
    """Return a host as the machine writes it whose `interface` leads there."""
    return f"{without_scope(host)}%{interface}" if is_link_local(host) else host


def with_named_scope(host: str) -> str:
    """Return a host with the name of its interface where the system gave its number."""
    bare, _, scope = host.partition("%")
    if not scope.isdigit():
        return host
    try:
        return f"{bare}%{socket.if_indextoname(int(scope))}"
    except (OSError, OverflowError):
        return bare
