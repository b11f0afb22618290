"""Measures how long one TCP handshake with an address takes.

Owns the socket. Doesn't know who answers: this node verified the peer when it first used the
address, and every later connection verifies it again.
"""

import asyncio
import socket
import struct
from typing import Final

from jupiterd.ports import Address

HANG_UP: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 s: closing resets the connection, so neither end keeps it in TIME_WAIT."""


async def connect_time_s(address: Address, timeout_s: float) -> float | None:
    """Return the seconds that a TCP handshake took; None if none succeeded in time."""
    loop = asyncio.get_running_loop()
    try:
        family, _, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        with socket.socket(family, socket.SOCK_STREAM) as asker:
            asker.settimeout(0)
            asker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HANG_UP)
            began_s = loop.time()
            async with asyncio.timeout(timeout_s):
                await loop.sock_connect(asker, target)
            return loop.time() - began_s
    except (OSError, TimeoutError):
        return None
