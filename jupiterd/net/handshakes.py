"""How many TCP handshakes an address leaves without an answer: what a link loses shows in them.

Owns the sockets. Doesn't know who answers there, or what follows from the number. A refusal is an
answer too. Nothing is sent but the handshakes, and the two kernels do them by themselves; so we
look once, after a while, and a busy machine isn't taken for a bad link.
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
"""Wi-Fi may hold packets back for half a second; a lost one is sent again after a whole one."""

_NO_ROUTE: Final = {
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.ETIMEDOUT,
}
"""What our own machine says where nobody has answered: it has no route, or found nobody there."""

_HANG_UP: Final = struct.pack("ii", 1, 0)
"""Linger for no time: the connection is reset, and leaves nothing behind at either end."""


async def unanswered(
    addresses: Sequence[Address], each: int, answer_s: float = ANSWER_S
) -> list[int]:
    """Begin so many handshakes with each address, all at once; return how many got no answer."""
    with contextlib.ExitStack() as stack:
        askers = [
            [stack.enter_context(_asker(address)) for _ in range(each)] for address in addresses
        ]
        await asyncio.sleep(answer_s)
        answered = _answered([asker for group in askers for asker in group if asker is not None])
        return [sum(asker not in answered for asker in group) for group in askers]


@contextlib.contextmanager
def _asker(address: Address) -> Generator[socket.socket | None]:
    """Begin a handshake; None where nothing leads there."""
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
