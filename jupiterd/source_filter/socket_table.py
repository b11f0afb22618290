"""The TCP sockets of this machine's network, as the kernel lists them to anybody (sock_diag).

Owns the messages of netlink for that; Linux alone has them. What listens is found without a look at
any connection, so that a look costs microseconds. Doesn't know whose process has a socket.
"""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from jupiterd.source_filter.program import plain_address

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST_DUMP: Final = 0x301
_ERROR, _DONE = 2, 3
_ESTABLISHED, _LISTEN = 1, 10
_MEMORY: Final = 7
"""The attribute that holds how many packets were dropped, as the last of its numbers."""

_HEAD: Final = struct.Struct("=IHHII")
_REQUEST: Final = struct.Struct("=BBBxI48x")
_ROW: Final = struct.Struct("=4s2s2s16s16s16xIIII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_NUMBER: Final = struct.Struct("=I")

BUFFER_BYTES: Final = 1 << 16
TIMEOUT_S: Final = 1.0

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class SocketRow:
    """One socket."""

    inode: int
    """0 where no process has it yet."""
    owner: int
    """The user whose it is."""
    port: int
    drops: int
    """Packets that the kernel has dropped there; 0 for what is connected."""
    packed_host: bytes
    packed_peer: bytes

    @property
    def host(self) -> Address:
        """Return its own address."""
        return _address(self.packed_host)

    @property
    def peer(self) -> Address:
        """Return who is connected; of what listens, nobody's address."""
        return _address(self.packed_peer)


class SocketTable:
    """Reads the table; raises OSError wherever the kernel doesn't tell."""

    def __init__(self) -> None:
        family: int = socket.AF_NETLINK  # pyright: ignore[reportAttributeAccessIssue] - Linux's
        self._link = socket.socket(family, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._link.settimeout(TIMEOUT_S)

    def listening(self) -> list[SocketRow]:
        """Return what listens, to IPv4 or IPv6."""
        return [*self._dump(socket.AF_INET, _LISTEN), *self._dump(socket.AF_INET6, _LISTEN)]

    def connected(self) -> list[SocketRow]:
        """Return what is connected; dearer, by the number of connections of the machine."""
        rows = *self._dump(socket.AF_INET, _ESTABLISHED), *self._dump(socket.AF_INET6, _ESTABLISHED)
        return list(rows)

    def close(self) -> None:
        """Close our end."""
        self._link.close()

    def _dump(self, family: int, state: int) -> Iterator[SocketRow]:
        memory = 1 << (_MEMORY - 1) if state == _LISTEN else 0
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, memory, 1 << state)
        head = _HEAD.pack(_HEAD.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
        self._link.send(head + body)
        while True:
            data = self._link.recv(BUFFER_BYTES)
            at = 0
            while at + _HEAD.size <= len(data):
                size, kind, *_ = _HEAD.unpack_from(data, at)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", data, at + _HEAD.size)[0]
                    raise OSError(number, "the kernel doesn't list sockets")
                yield _row(data[at + _HEAD.size : at + size])
                at += max(_HEAD.size, (size + 3) & ~3)


def _row(data: bytes) -> SocketRow:
    about, port, _, host, peer, _, _, owner, inode = _ROW.unpack_from(data)
    length = 4 if about[0] == socket.AF_INET else 16
    drops = _drops(data) if len(data) > _ROW.size else 0
    return SocketRow(inode, owner, int.from_bytes(port, "big"), drops, host[:length], peer[:length])


def _address(packed: bytes) -> Address:
    return plain_address(str(ip_address(packed)))


def _drops(data: bytes) -> int:
    at = _ROW.size
    while at + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        if kind == _MEMORY:
            return int(_NUMBER.unpack_from(data, at + size - _NUMBER.size)[0])
        at += max(_ATTRIBUTE.size, (size + 3) & ~3)
    return 0
