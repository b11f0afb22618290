"""Adds and removes the scope of link-local IPv6 addresses.

Owns writing such an address with and without its scope. A scope is the name of an interface of this
machine; this node never sends it to others, since they have other names for the same link.
"""

import re
import socket

from jupiterd import address_ranges


def is_link_local(host: str) -> bool:
    """Return whether a host is an IPv6 address that is valid on one link only."""
    return ":" in host and address_ranges.is_link_local(host)


def without_scope(host: str) -> str:
    """Return the host without its scope, as another machine may see it."""
    return host.partition("%")[0]


def host_in(text: str) -> str:
    """Return the host of HOST:PORT or [IPv6]:PORT."""
    return text.rpartition(":")[0].strip("[]")


def without_scope_in(text: str) -> str:
    """Return HOST:PORT without its scope, as another machine may see it."""
    return re.sub("%[^]]*", "", text)


def in_scope(host: str, interface: str) -> str:
    """Return a link-local host with `interface` as its scope; any other host as it is."""
    return f"{without_scope(host)}%{interface}" if is_link_local(host) else host


def with_named_scope(host: str) -> str:
    """Return a host with its scope as an interface's name where it was an index."""
    bare, _, scope = host.partition("%")
    if not scope.isdigit():
        return host
    try:
        return f"{bare}%{socket.if_indextoname(int(scope))}"
    except (OSError, OverflowError):
        return bare
