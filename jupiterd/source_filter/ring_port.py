"""The port of an MLX ring's rank, kept from strangers while the ring listens there.

Owns a socket of its own at that port. MLX takes whoever connects first for a neighbour, holds
Python's lock meanwhile, and lets others share its port (SO_REUSEPORT). So this socket is there
before MLX's, and the kernel is told who gets which: members MLX's, all others this one, which hangs
up on them and knows who they were. A member that comes before MLX listens is not answered, and its
system tries again. Only Linux can tell them apart.
"""

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from jupiterd.source_filter.listeners import attach
from jupiterd.source_filter.program import DROP, PASS, program_for

_SO_ATTACH_REUSEPORT_CBPF: Final = 51
_OURS: Final = 0
_RING: Final = 1
"""Numbers of the sockets at the port, in the order in which they listen."""

BACKLOG: Final = 128


class RingPort:
    """One port; made by `hold_ring_port` alone."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    def strangers(self) -> list[str]:
        """Return the addresses of those who came since the last call; they are hung up on."""
        found: list[str] = []
        with suppress(OSError):  # nobody is left
            while True:
                connection, address = self._listener.accept()
                connection.close()
                found.append(str(address[0]))
        return found

    def close(self) -> None:
        """Let the port go."""
        self._listener.close()


def hold_ring_port(host: str, port: int, members: Sequence[str]) -> RingPort | None:
    """Hold a port that a ring is about to listen at; None where the system can't, or it is taken.

    Raises:
        ValueError: a member's address is none.
    """
    if sys.platform != "linux" or not members:
        return None
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        attach(listener, program_for(members, _RING, _OURS), _SO_ATTACH_REUSEPORT_CBPF)
        attach(listener, program_for(members, theirs=DROP, others=PASS))
        listener.listen(BACKLOG)
    except (OSError, OverflowError):  # taken, not ours, or no port at all
        listener.close()
        return None
    listener.setblocking(False)  # noqa: FBT003 - it has no name
    return RingPort(listener)
