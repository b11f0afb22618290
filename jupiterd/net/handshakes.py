"""Counts the TCP handshakes that an address leaves unanswered, which reveals packet loss.

Owns the sockets. Doesn't know who answers, or what the caller does with the count. A refusal counts
as an answer. It sends nothing but handshakes. The two kernels carry them out, and this code looks
once, after a while, so that a busy machine doesn't look like a bad link.
"""

import asyncio
import contextlib
import errno
import selectors
import socket
import struct
from collections.abc import Generator, Sequence
from typing import Final

from jupiterd.ports import Address

ANSWER_S: Final = 0.7
"""Wi-Fi may delay packets for half a second; the kernel repeats a lost one after one second."""

_NO_ROUTE: Final = {
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.ETIMEDOUT,
}
"""Errors of this machine's own kernel: it has no route, or found no such neighbour."""

_HANG_UP: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 s: closing resets the connection, so neither end keeps it in TIME_WAIT."""


async def unanswered(
    addresses: Sequence[Address], each: int, answer_s: float = ANSWER_S
) -> list[int]:
    """Start this many handshakes with each address at once; return how many got no answer."""
    with contextlib.ExitStack() as stack:
        askers = [
            [stack.enter_context(_asker(address)) for _ in range(each)] for address in addresses
        ]
        await asyncio.sleep(answer_s)
        answered = _answered([asker for group in askers for asker in group if asker is not None])
        return [sum(asker not in answered for asker in group) for group in askers]


@contextlib.contextmanager
def _asker(address: Address) -> Generator[socket.socket | None]:
    """Start a handshake; return None if there is no route."""
    try:
        family, _, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        asker = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        yield None
        return
    with asker:
        asker.setblocking(False)  # noqa: FBT003 - the name of the method says it
        asker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _HANG_UP)
        yield None if asker.connect_ex(target) in _NO_ROUTE else asker


def _answered(askers: Sequence[socket.socket]) -> set[socket.socket]:
    with selectors.DefaultSelector() as selector:
        for asker in askers:
            selector.register(asker, selectors.EVENT_WRITE)
        ready = {key.fileobj for key, _ in selector.select(0)}
    return {
        asker
        for asker in askers
        if asker in ready and asker.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) not in _NO_ROUTE
    }
