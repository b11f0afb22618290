"""The open port's listener: it relays bytes to the gRPC server behind it.

Owns the sockets, the time that each may be silent, and the limit of connections for each address.
Doesn't know TLS or gRPC, and trusts nothing that a client sends. It exists because gRPC limits only
the total of connections, so one address could take them all.
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
"""How long to wait for the first byte, in s. The gRPC server gives the TLS handshake as long."""

UNASKED_S: Final = 10.0
"""How long to wait for the first call, in s; without one the connection is closed."""

FLUSH_S: Final = 2.0
"""How long to relay the last bytes, in s, after one end closed."""

UNREAD_S: Final = 15.0
"""How long sent bytes may stay unacknowledged, in s, before the system closes the connection: so a
client that vanished or doesn't read loses its place, even after a call. Linux only."""

PIECE_BYTES: Final = 64 << 10
BUFFERED_BYTES: Final = 128 << 10
"""Write buffer of each direction: all strangers together must not take much memory."""

BACKLOG: Final = 512
MAPPED: Final = "::ffff:"
"""Prefix of an IPv4 address on a dual-stack IPv6 socket."""


class Proxy:
    """Accepts any client and relays those for which `places` has room."""

    def __init__(
        self, places: ConnectionLimits, callers: Callers, on_refused: Callable[[str, str], None]
    ) -> None:
        """`on_refused` gets the address and the reason."""
        self._places, self._callers, self._on_refused = places, callers, on_refused
        self._target = 0
        self._server: asyncio.Server | None = None
        self._accepted = Connections(self._serve)

    async def start(self, listener: socket.socket, port: int) -> None:
        """Relay each connection to `listener` to this port on loopback."""
        self._target = port
        self._server = await asyncio.start_server(
            self._accepted.take, sock=listener, limit=PIECE_BYTES, backlog=BACKLOG
        )

    def close(self) -> None:
        """Accept no more connections; open ones stay. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def stop(self) -> None:
        """Close all connections; idempotent."""
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
            # Else each keeps its loopback port for a minute, and a stranger could use up all ports.
            far[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HANG_UP)
            _bound_waiting(near[1].get_extra_info("socket"))  # fails if the client has hung up
            for _, writer in (near, far):
                writer.transport.set_write_buffer_limits(high=BUFFERED_BYTES)
            far[1].write(first)
            with self._callers.known(int(far[1].get_extra_info("sockname")[1]), host) as caller:
                await _until_over(near, far, caller)
                await _flushed(near[1])
        finally:
            far[1].transport.abort()


async def _until_over(near: Ends, far: Ends, caller: InboundConnection) -> None:
    """Relay until an end closes; raises TimeoutError if no call comes within `UNASKED_S`."""
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
    """Send the last bytes before the connection closes: they tell the client why it closes."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(FLUSH_S):
            await writer.wait_closed()


def _bound_waiting(near: socket.socket) -> None:
    if sys.platform == "linux":
        unread_ms = int(UNREAD_S * 1000)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; `::` also accepts IPv4. Raises OSError."""
    if ":" not in host:
        return socket.create_server((host, port), backlog=BACKLOG)
    return socket.create_server(
        (host, port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=host == "::"
    )


def host_of(peername: tuple[Any, ...] | None) -> str:
    """Return the address of the other end, with its scope if it has one."""
    if not peername:
        return ""
    host = str(peername[0])
    if host.startswith(MAPPED) and "." in host:
        return host.removeprefix(MAPPED)
    scope = peername[3] if len(peername) > 3 else 0
    return with_named_scope(f"{host.partition('%')[0]}%{scope}") if scope else host
