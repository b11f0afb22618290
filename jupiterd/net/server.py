"""The gRPC servers that peers connect to.

Owns their options, ports, start and stop. Doesn't know what their services do, or who is a member.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from jupiterd.errors import Bug, PortInUseError
from jupiterd.net.call_guard import CallGuard
from jupiterd.net.credentials import members_credentials, server_credentials
from jupiterd.net.identity import Identity
from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.open_port.proxy import Proxy, listening_socket

Registration = Callable[[grpc.aio.Server], None]
"""Adds one servicer to a server, such as a partial of `add_PeerServicer_to_server`."""

MAX_CONNECTIONS: Final = 256

SERVER_OPTIONS: Final[tuple[tuple[str, Any], ...]] = (
    ("grpc.so_reuseport", 0),  # else a second daemon could silently share the port on Linux
    # A page of the ledger has 1 MiB plus one entry; `call_guard` allows strangers less.
    ("grpc.max_receive_message_length", 2 << 20),
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_metadata_size", 8 << 10),  # our metadata takes a few hundred bytes
    # A client has 5 s for the TLS handshake; gRPC's default is 120 s.
    ("grpc.server_handshake_timeout_ms", 5_000),
    # 63 other nodes hold three connections each; the rest is for nodes that change their address
    # and for hellos. More would only use up this process's file descriptors.
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    # gRPC closes an idle connection; a member's next call connects again.
    ("grpc.max_connection_idle_ms", 60_000),
    # The probe would ping each connection to estimate its bandwidth-delay product, at first as
    # often as heartbeats come. Peers send ledger pages and test bytes: a window of 1 MiB is enough.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 20),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

AMONG_MEMBERS: Final[tuple[tuple[str, Any], ...]] = (
    # The server checks membership only at the handshake: a removed member's connection lasts at
    # most this long. Running calls on it go on to their end; the next call connects again.
    ("grpc.max_connection_age_ms", 300_000),
)

BEHIND_FRONT: Final[tuple[tuple[str, Any], ...]] = (
    # The proxy in front limits the connections of each address. Members that use the open port come
    # to this server too, beside all strangers.
    ("grpc.max_allowed_incoming_connections", 4 * MAX_CONNECTIONS),
    ("grpc.max_connection_idle_ms", 30_000),
)


def listening_host(*, loopback_only: bool) -> str:
    """Return the host to listen on: every IPv4 and IPv6 address of the machine, or loopback.

    `::` also accepts IPv4; a machine without IPv6 gets `0.0.0.0`.
    """
    if loopback_only:
        return "127.0.0.1"
    return "::" if _has_ipv6() else "0.0.0.0"  # noqa: S104 - peers must reach it


class PeerServer:
    """A gRPC server over mutual TLS for any number of services."""

    def __init__(
        self,
        identity: Identity,
        host: str,
        port: int,
        border: CallGuard,
        *,
        credentials: grpc.ServerCredentials | None = None,
        more_options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """Without `credentials` every key is accepted; `more_options` override `SERVER_OPTIONS`."""
        self._credentials = credentials or server_credentials(identity)
        self._options = tuple({**dict(SERVER_OPTIONS), **dict(more_options)}.items())
        self._border = border
        self._host = host
        self._port = port
        self._registrations: list[Registration] = []
        self._server: grpc.aio.Server | None = None

    def add(self, registration: Registration) -> None:
        """Add a service; call it before `start`, or it raises Bug."""
        if self._server is not None:
            raise Bug("a service was added to a running server")
        self._registrations.append(registration)

    async def start(self) -> int:
        """Start to serve and return the port; the system chooses it if the given one is 0.

        Raises:
            PortInUseError: another program listens there.
        """
        server = grpc.aio.server(options=self._options, interceptors=(self._border,))
        for registration in self._registrations:
            registration(server)
        port = self._bind(server)
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_s: float) -> None:
        """Accept no more calls and abort running ones after `grace_s` seconds; idempotent."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace_s)

    def _bind(self, server: grpc.aio.Server) -> int:
        host = f"[{self._host}]" if ":" in self._host else self._host
        try:
            port = server.add_secure_port(f"{host}:{self._port}", self._credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise _taken(self._host, self._port)
        return port


class NodeServer:
    """A node's two ports with the same services: one for members and one for anybody.

    The system chooses the members' port, and members are told its number. A stranger's handshake
    fails there, so that only members hold its connections.
    """

    def __init__(
        self,
        identity: Identity,
        place: tuple[str, int],
        border: CallGuard,
        front: Proxy,
        certificates: Callable[[], frozenset[bytes]],
    ) -> None:
        """`place`: host and open port; `certificates` returns the members' leaves."""
        self._place, self._front = place, front
        members = members_credentials(identity, certificates)
        self._members = PeerServer(
            identity, place[0], 0, border, credentials=members, more_options=AMONG_MEMBERS
        )
        self._behind = PeerServer(identity, LOOPBACK, 0, border, more_options=BEHIND_FRONT)
        self.members_port = 0

    def add(self, registration: Registration) -> None:
        """Add a service; call it before `start`."""
        for server in (self._members, self._behind):
            server.add(registration)

    async def start(self) -> int:
        """Start to serve and return the open port; the system chooses it if the given one is 0.

        Raises:
            PortInUseError: another program listens there.
        """
        try:
            listener = listening_socket(*self._place)
        except OSError as error:
            raise _taken(*self._place) from error
        with contextlib.ExitStack() as unused:
            unused.callback(listener.close)
            self.members_port = await self._members.start()
            await self._front.start(listener, await self._behind.start())
            unused.pop_all()
        return int(listener.getsockname()[1])

    async def stop(self, grace_s: float) -> None:
        """Accept no more calls and abort running ones after `grace_s` seconds; idempotent."""
        self._front.close()
        await asyncio.gather(self._members.stop(grace_s), self._behind.stop(grace_s))
        await self._front.stop()


def _taken(host: str, port: int) -> PortInUseError:
    from jupiterd.net.port_holder import holder_of

    return PortInUseError(f"port {port} on {host} is taken by {holder_of(port)}")


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True
