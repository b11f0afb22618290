"""The listener that anybody may connect to: it passes bytes on to the gRPC server behind it.

Owns the sockets, how long each may be silent, and that no address holds too many. Doesn't know TLS,
or what is asked: whoever connects is believed nothing. It is here as gRPC counts all connections
together, and whoever makes the most of them would have all of its places.
"""

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

from jupiterd.errors import TooOftenError
from jupiterd.net.connect_time import HANG_UP
from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.open_port.callers import Callers, InboundConnection
from jupiterd.net.open_port.connection_limits import ConnectionLimits
from jupiterd.net.scopes import with_named_scope
from jupiterd.net.tunnels.connections import Connections
from jupiterd.net.tunnels.relay import Ends, until_closed

log = logging.getLogger(__name__)

SILENT_S: Final = 5.0
"""For the first byte. The gRPC server gives as much to the TLS handshake."""

UNASKED_S: Final = 10.0
"""For the first call: who only shakes hands holds a place no longer."""

FLUSH_S: Final = 2.0
"""For the last bytes, once one end has closed."""

UNREAD_S: Final = 15.0
"""For what was sent to the other end to be taken there: who is gone, or reads nothing, holds no
place longer, even if it has once asked something. Linux alone keeps this."""

PIECE_BYTES: Final = 64 << 10
BUFFERED_BYTES: Final = 128 << 10
"""Of each way of a connection: all strangers together may hold little memory."""

BACKLOG: Final = 512
MAPPED: Final = "::ffff:"
"""How IPv6 writes an IPv4 address, where one socket takes both."""


class Proxy:
    """Listens for anybody, and passes on whom `places` has room for."""

    def __init__(
        self, places: ConnectionLimits, callers: Callers, on_refused: Callable[[str, str], None]
    ) -> None:
        """`on_refused` is told the address and why."""
        self._places, self._callers, self._on_refused = places, callers, on_refused
        self._target = 0
        self._server: asyncio.Server | None = None
        self._accepted = Connections(self._serve)

    async def start(self, listener: socket.socket, port: int) -> None:
        """Pass on what comes to a listening socket from now on, to a port of the loopback."""
        self._target = port
        self._server = await asyncio.start_server(
            self._accepted.take, sock=listener, limit=PIECE_BYTES, backlog=BACKLOG
        )

    def close(self) -> None:
        """Accept nobody any more; who is connected stays. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def stop(self) -> None:
        """Hang up on everybody; idempotent."""
        self.close()
        await self._accepted.end()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = host_of(writer.get_extra_info("peername"))
        try:
            with self._places.hold(host):
                await self._passed_on((reader, writer), host)
        except TooOftenError as error:
            self._on_refused(host, error.message)
        except (OSError, TimeoutError):
            log.debug("connection_ended", extra={"host": host})

    async def _passed_on(self, near: Ends, host: str) -> None:
        async with asyncio.timeout(SILENT_S):
            first = await near[0].read(PIECE_BYTES)
        if not first:
            return
        far = await asyncio.open_connection(
            LOOPBACK, self._target, local_addr=(LOOPBACK, 0), limit=PIECE_BYTES
        )
        try:
            # Or each would keep its port on loopback for a minute, and a stranger could use up all.
            far[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HANG_UP)
            _bound_waiting(near[1].get_extra_info("socket"))  # fails where it has hung up by now
            for _, writer in (near, far):
                writer.transport.set_write_buffer_limits(high=BUFFERED_BYTES)
            far[1].write(first)
            with self._callers.known(int(far[1].get_extra_info("sockname")[1]), host) as caller:
                await _until_over(near, far, caller)
                await _flushed(near[1])
        finally:
            far[1].transport.abort()


async def _until_over(near: Ends, far: Ends, caller: InboundConnection) -> None:
    """Pass on what comes until an end closes; raises TimeoutError where nothing is asked."""
    passing = asyncio.ensure_future(until_closed(near, far, FLUSH_S))
    try:
        done, _ = await asyncio.wait({passing}, timeout=UNASKED_S)
        if not done and not caller.has_called:
            raise TimeoutError
        await passing
    finally:
        passing.cancel()
        await asyncio.gather(passing, return_exceptions=True)


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Let the last bytes out before the connection ends: they say why it does."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(FLUSH_S):
            await writer.wait_closed()


def _bound_waiting(near: socket.socket) -> None:
    if sys.platform == "linux":
        unread_ms = int(UNREAD_S * 1000)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; `::` takes IPv4 as well. Raises OSError."""
    if ":" not in host:
        return socket.create_server((host, port), backlog=BACKLOG)
    return socket.create_server(
        (host, port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=host == "::"
    )


def host_of(peername: tuple[Any, ...] | None) -> str:
    """Return the address of the other end, with its scope where it needs one."""
    if not peername:
        return ""
    host = str(peername[0])
    if host.startswith(MAPPED) and "." in host:
        return host.removeprefix(MAPPED)
    scope = peername[3] if len(peername) > 3 else 0
    return with_named_scope(f"{host.partition('%')[0]}%{scope}") if scope else host
