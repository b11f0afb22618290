"""This process's listening sockets: found, closed to strangers by the kernel, and asked who came.

Owns the socket options of Linux for that; none needs root, and no setting of the system changes.
Elsewhere nothing is closed, and the functions say so. Doesn't know what listens, or for whom.
"""

import ctypes
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from jupiterd.source_filter.program import Instruction, plain_address, program_for

_SO_ATTACH_FILTER: Final = 26
_SO_LOCK_FILTER: Final = 44
_SO_MEMINFO: Final = 55
_MEMINFO: Final = struct.Struct("=9I")

_DESCRIPTORS: Final = Path("/dev/fd")


def close_to_others(listener: socket.socket, members: Iterable[str]) -> bool:
    """Let the kernel drop what anybody but these addresses sends to a socket, for good.

    Return whether it does: only Linux can, and nobody is shut out where no member is named.
    Connections that it accepts drop it, too.

    Raises:
        ValueError: a member's address is none.
    """
    known = list(members)
    if sys.platform != "linux" or not known:
        return False
    try:
        attach(listener, program_for(known))
        listener.setsockopt(socket.SOL_SOCKET, _SO_LOCK_FILTER, 1)
    except OSError:  # a sandbox without the option, or no memory for it
        return False
    return True


def is_closed(listener: socket.socket) -> bool:
    """Say whether a socket has a filter already that nobody can take away."""
    try:
        return bool(listener.getsockopt(socket.SOL_SOCKET, _SO_LOCK_FILTER))
    except OSError:
        return False


def attach(
    listener: socket.socket, program: Iterable[Instruction], option: int = _SO_ATTACH_FILTER
) -> None:
    """Give a socket a program; raises OSError where the system has none of that."""
    instructions = [instruction.packed() for instruction in program]
    kept = ctypes.create_string_buffer(b"".join(instructions))
    pointed = struct.pack("@HP", len(instructions), ctypes.addressof(kept))  # struct sock_fprog
    listener.setsockopt(socket.SOL_SOCKET, option, pointed)


def dropped(listener: socket.socket) -> int:
    """Return how many packets the kernel has dropped at a socket; 0 where nobody knows."""
    if sys.platform != "linux":
        return 0
    try:
        told = listener.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        return int(_MEMINFO.unpack(told)[8])
    except (OSError, struct.error):
        return 0


def own_sockets() -> Iterator[socket.socket]:
    """Yield this process's TCP sockets, each as a duplicate that the caller closes."""
    for name in [path.name for path in _DESCRIPTORS.iterdir()]:
        with suppress(OSError):  # closed meanwhile
            found = _socket_of(int(name))
            if found is not None:
                yield found


def own_listeners() -> list[socket.socket]:
    """Return this process's listening TCP sockets, as duplicates that the caller closes."""
    return list(_those_that(is_listening=True))


def hang_up_on_others(ports: Iterable[int], members: Iterable[str]) -> list[str]:
    """End what strangers have connected to these ports of this process; return their addresses.

    That is who came before the kernel was told of the members, or where it can't be told.
    """
    ours, known = set(ports), {plain_address(member) for member in members}
    found: list[str] = []
    for connection in _those_that(is_listening=False):
        with connection, suppress(OSError):
            host = str(connection.getpeername()[0])
            if connection.getsockname()[1] in ours and plain_address(host) not in known:
                found.append(host)
                connection.shutdown(socket.SHUT_RDWR)
    return found


def _those_that(*, is_listening: bool) -> Iterator[socket.socket]:
    for found in own_sockets():
        if _listens(found) == is_listening:
            yield found
        else:
            found.close()


def _listens(found: socket.socket) -> bool:
    try:
        return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False


def _socket_of(descriptor: int) -> socket.socket | None:
    """Return a duplicate of a descriptor, where it is a TCP socket; raises OSError if it's gone."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return None
    found = socket.socket(fileno=os.dup(descriptor))
    is_tcp = found.family in {socket.AF_INET, socket.AF_INET6} and found.type == socket.SOCK_STREAM
    if is_tcp:
        return found
    found.close()
    return None
