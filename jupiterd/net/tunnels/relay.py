"""Tunnels from loopback of one node to loopback of another, over TLS.

Owns both ends and the relay of bytes. An entrance listens on loopback and connects to the other
node; an exit listens where other nodes reach this one, accepts only their keys, and connects to a
port on loopback. Doesn't know which programs use it.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Final

from jupiterd.ids import NodeId
from jupiterd.net.identity import LEAF_NAME
from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.tunnels.connections import Connections
from jupiterd.net.tunnels.contexts import holder_of
from jupiterd.ports import Address

log = logging.getLogger(__name__)

PIECE_BYTES: Final = 256 << 10
BUFFERED_BYTES: Final = 1 << 20
MAX_CONNECTIONS: Final = 8
"""Most connections at once of an end that a single rank uses: a rank needs one or two."""

CONNECTIONS_OF_A_RANK: Final = 2

HANDSHAKE_S: Final = 10.0
DIALING_S: Final = 35.0
"""How long to retry, in s, while the target refuses connections: ranks of a ring dial for 31 s."""

DIAL_AGAIN_S: Final = 0.02

CLOSING_S: Final = 60.0
"""How long the other direction of a connection may last, in s, after the first one ended."""

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Ends]]


@asynccontextmanager
async def entrance(address: Address, tls: ssl.SSLContext) -> AsyncGenerator[int]:
    """Let this machine's processes reach a port of another node; yields the loopback port."""

    async def dial() -> Ends:
        return await asyncio.open_connection(
            address.host,
            address.port,
            ssl=tls,
            server_hostname=LEAF_NAME,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=CLOSING_S,
            limit=PIECE_BYTES,
        )

    with socket.create_server((LOOPBACK, 0)) as listener:
        async with _relaying(listener, None, dial, lambda _: True, MAX_CONNECTIONS):
            yield int(listener.getsockname()[1])


@asynccontextmanager
async def exit_of(
    listener: socket.socket,
    tls: ssl.SSLContext,
    members: Collection[NodeId],
    port: int,
    ranks: int = 1,
) -> AsyncGenerator[None]:
    """Let these nodes reach `port` on this machine's loopback through a listening socket.

    Args:
        listener: listens where the other nodes reach this one.
        tls: accepts only the nodes' keys.
        members: the nodes that may connect.
        port: the port on loopback.
        ranks: how many ranks may connect to it; bounds the connections.
    """

    async def dial() -> Ends:
        return await asyncio.open_connection(LOOPBACK, port, limit=PIECE_BYTES)

    def is_member(writer: asyncio.StreamWriter) -> bool:
        return holder_of(writer.get_extra_info("ssl_object")) in members

    most = max(MAX_CONNECTIONS, ranks * CONNECTIONS_OF_A_RANK)
    async with _relaying(listener, tls, dial, is_member, most):
        yield


@asynccontextmanager
async def _relaying(
    listener: socket.socket,
    tls: ssl.SSLContext | None,
    dial: Dial,
    is_let_in: Callable[[asyncio.StreamWriter], bool],
    most: int,
) -> AsyncGenerator[None]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(accepted) <= most and is_let_in(writer):
            await _joined((reader, writer), dial)

    accepted, secure = Connections(serve), tls is not None
    server = await asyncio.start_server(
        accepted.take,
        sock=listener,
        ssl=tls,
        ssl_handshake_timeout=HANDSHAKE_S if secure else None,
        ssl_shutdown_timeout=CLOSING_S if secure else None,
        limit=PIECE_BYTES,
    )
    try:
        yield
    finally:
        server.close()
        await accepted.end()


async def _joined(near: Ends, dial: Dial) -> None:
    """Connect to the target and relay until one end closes; then close both.

    All bytes that came before are sent first. TLS streams of asyncio can't close one direction
    only.
    """
    ends = [near]
    try:
        far = await _dialed(dial)
        ends.append(far)
        for _, writer in ends:
            writer.transport.set_write_buffer_limits(high=BUFFERED_BYTES)
        await until_closed(near, far)
    except (OSError, TimeoutError):
        log.debug("tunnel_not_dialed")  # the program sees its connection close
    finally:
        for _, writer in ends:
            writer.transport.abort()


async def until_closed(near: Ends, far: Ends, closing_s: float = CLOSING_S) -> None:
    """Relay in both directions until one end closes.

    Args:
        near: reader and writer of one end.
        far: those of the other end.
        closing_s: how long the other direction may last after that, in s.
    """
    pumps = [
        asyncio.ensure_future(_pass_on(near[0], far[1])),
        asyncio.ensure_future(_pass_on(far[0], near[1])),
    ]
    try:
        ended, open_still = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        if open_still and not any(pump.exception() for pump in ended):
            await asyncio.wait(open_still, timeout=closing_s)
    finally:
        for each in pumps:
            each.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _dialed(dial: Dial) -> Ends:
    async with asyncio.timeout(DIALING_S):
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return await dial()
            await asyncio.sleep(DIAL_AGAIN_S)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    has_halves = writer.can_write_eof()
    # Drain to the last byte. With a limit of 0, an empty TLS buffer would count as full in asyncio.
    writer.transport.set_write_buffer_limits(high=0 if has_halves else 1, low=0)
    await writer.drain()
    if has_halves:
        writer.write_eof()
    else:
        writer.close()
