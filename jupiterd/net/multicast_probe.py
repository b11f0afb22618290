"""Tests whether multicast leaves an interface and comes back in.

Owns one query of multicast DNS on each interface, and the wait for answers. Doesn't know what the
result means. The query asks for a random name, so that this node recognizes its own query, and for
all services, so that other machines answer.
"""

import contextlib
import secrets
import select
import socket
import struct
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from zeroconf import DNSOutgoing, DNSQuestion  # pyright: ignore[reportPrivateImportUsage]

from jupiterd.net.scopes import without_scope

GROUPS: Final = {socket.AF_INET: "224.0.0.251", socket.AF_INET6: "ff02::fb"}
PORT: Final = 5353
LISTEN_S: Final = 2.0
ENOUGH_S: Final = 1.2
"""How long to listen, in s, if this node heard both itself and another machine: responders delay
their answers by up to half a second."""

_QUERY, _PTR, _IN = 0, 12, 1
_IP_MULTICAST_ALL, _IPV6_MULTICAST_ALL = 49, 29
"""Linux options: 0 gives a socket only packets of the groups that it joined itself."""
_MAX_PACKET_BYTES: Final = 9000
_TTL: Final = 255


@dataclass(frozen=True)
class MulticastReading:
    """The result on one interface for one address family."""

    interface: str
    address: str
    errno: int = 0
    """Why the query couldn't be sent; 0 if it was."""
    is_own_heard: bool = False
    """Whether this node heard its own query."""
    others: tuple[str, ...] = ()
    """Addresses of other machines that this node heard meanwhile."""


def probe_multicast(
    interface: str, address: str, own_addresses: frozenset[str], listen_s: float = LISTEN_S
) -> MulticastReading:
    """Send a query on one interface and listen for at most `listen_s` s. Raises no OSError.

    Args:
        interface: its name.
        address: one of its addresses; selects the address family to test.
        own_addresses: all addresses of this machine, to tell others from itself.
        listen_s: how long to listen, in s.
    """
    mark = f"{secrets.token_hex(8)}._jupiter-doctor"
    try:
        with _joined(interface, address) as (heard, target):
            heard.sendto(_question(mark), target)
            is_own_heard, others = _listen(heard, mark.partition(".")[0].encode(), listen_s)
    except OSError as error:
        return MulticastReading(interface, address, errno=error.errno or -1)
    return MulticastReading(
        interface, address, 0, is_own_heard, tuple(sorted(others - own_addresses))
    )


@contextmanager
def _joined(interface: str, address: str) -> Generator[tuple[socket.socket, tuple[str | int, ...]]]:
    """Yield a socket that joined the group on that interface, and the target of the query."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as group_socket:
        group_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError, AttributeError):  # other responders set it too
            group_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        target = (
            _join_ipv6(group_socket, interface)
            if ":" in address
            else _join_ipv4(group_socket, address)
        )
        group_socket.setblocking(False)  # noqa: FBT003 - the socket API
        yield group_socket, target


def _join_ipv4(group_socket: socket.socket, address: str) -> tuple[str | int, ...]:
    group = GROUPS[socket.AF_INET]
    _only_own_groups(group_socket, socket.IPPROTO_IP, _IP_MULTICAST_ALL)
    group_socket.bind(("", PORT))
    own = socket.inet_aton(address)
    group_socket.setsockopt(
        socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + own
    )
    group_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
    group_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    group_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _TTL)
    return group, PORT


def _join_ipv6(group_socket: socket.socket, interface: str) -> tuple[str | int, ...]:
    group, number = GROUPS[socket.AF_INET6], socket.if_nametoindex(interface)
    group_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    _only_own_groups(group_socket, socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL)
    group_socket.bind(("::", PORT))
    membership = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", number)
    group_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
    group_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, number)
    group_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
    group_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _TTL)
    return group, PORT, 0, number


def _only_own_groups(group_socket: socket.socket, level: int, option: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # an old kernel
            group_socket.setsockopt(level, option, 0)


def _question(mark: str) -> bytes:
    out = DNSOutgoing(_QUERY)
    out.add_question(DNSQuestion(f"{mark}._udp.local.", _PTR, _IN))
    out.add_question(DNSQuestion("_services._dns-sd._udp.local.", _PTR, _IN))
    return out.packets()[0]


def _listen(heard: socket.socket, mark: bytes, listen_s: float) -> tuple[bool, set[str]]:
    """Return whether this node heard its own query, and the sources of all other packets."""
    is_own_heard, sources = False, set[str]()
    began_s = time.monotonic()
    while (passed_s := time.monotonic() - began_s) < listen_s:
        if is_own_heard and sources and passed_s > ENOUGH_S:
            break
        if not select.select([heard], [], [], min(listen_s - passed_s, 0.1))[0]:
            continue
        with contextlib.suppress(BlockingIOError):
            data, (host, *_) = heard.recvfrom(_MAX_PACKET_BYTES)
            is_own_heard = is_own_heard or mark in data
            if mark not in data:
                sources.add(without_scope(host))
    return is_own_heard, sources
