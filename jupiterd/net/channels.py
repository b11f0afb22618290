"""The five connections to one peer.

Owns their settings and their life. Doesn't know what a call asks, or when a peer counts as gone.

There are five because a message waits for all messages sent before it on its connection: a
heartbeat behind a checkpoint would arrive half a second late, and the node would look dead. Each
connection has a subchannel pool of its own, or gRPC would combine them into one.
"""

import asyncio
import contextlib
from collections.abc import Generator
from functools import cached_property
from ipaddress import ip_address
from typing import Any, Final, Self, cast

import grpc.aio

from jupiterd.net.artifact_wire import artifacts_stub
from jupiterd.net.credentials import TARGET_NAME_OPTION, channel_credentials
from jupiterd.net.identity import Identity
from jupiterd.net.resilient_channel import ResilientChannel
from jupiterd.ports import Address
from jupiterd.rpc.artifact_pb2_grpc import ArtifactsStub
from jupiterd.rpc.peer_pb2_grpc import PeerStub
from jupiterd.rpc.script_pb2_grpc import ScriptsStub
from jupiterd.rpc.serving_pb2_grpc import ServingStub

CHANNEL_OPTIONS: Final[tuple[tuple[str, Any], ...]] = (
    TARGET_NAME_OPTION,
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
    # Close idle connections: with 16 nodes, that saves 30 connections and their memory.
    ("grpc.client_idle_timeout_ms", 30_000),
)

MAX_SMALL_REPLY_BYTES: Final = 64 << 10
"""A heartbeat of 64 members, or a hello with all addresses, takes a quarter of that."""

MAX_REPLY_BYTES: Final = 4 << 20
MAX_BULK_REPLY_BYTES: Final = 17 << 20
"""A manifest comes in one message and may take 16 MiB; all other replies are far smaller."""

BRIEF_CALLS_S: Final = 12.0
"""Longer than the time-out of every call that isn't made `in_use`."""


class PeerChannels:
    """The connections to one peer, by what they carry; each opens on first use."""

    def __init__(
        self,
        identity: Identity,
        address: Address,
        certificate_pem: bytes,
        members_port: int = 0,
    ) -> None:
        """`members_port`: the peer's port for members only, which gRPC tries first; 0: none."""
        self.address, self.members_port = address, members_port
        self._identity = identity
        self._certificate_pem = certificate_pem
        self._credentials = channel_credentials(identity, certificate_pem)
        self._open: list[grpc.aio.Channel] = []
        # Stubs hold no reference to this object, so a dropped one is freed at once.
        self._closed = asyncio.Event()
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @cached_property
    def heartbeat(self) -> PeerStub:
        """The Peer service on a connection that carries only heartbeats."""
        # No pings to guess how much the connection holds: they would be as many as the beats.
        return PeerStub(self._channel(MAX_SMALL_REPLY_BYTES, ("grpc.http2.bdp_probe", 0)))

    @cached_property
    def control(self) -> PeerStub:
        """The Peer service for all other calls."""
        return PeerStub(self._channel(MAX_REPLY_BYTES))

    @cached_property
    def bulk(self) -> ArtifactsStub:
        """The Artifacts service, on a connection of its own."""
        return artifacts_stub(self._channel(MAX_BULK_REPLY_BYTES))

    @cached_property
    def scripts(self) -> ScriptsStub:
        """The Scripts service, on a connection that carries only the output of scripts."""
        return ScriptsStub(self._channel(MAX_REPLY_BYTES))

    @cached_property
    def serving(self) -> ServingStub:
        """The Serving service, on a connection that carries only answers of models."""
        return ServingStub(self._channel(MAX_REPLY_BYTES))

    def at(self, address: Address) -> "PeerChannels":
        """Return new channels to the same peer at another address."""
        return self.through(self.members_port, address)

    def through(self, members_port: int, address: Address | None = None) -> "PeerChannels":
        """Return new channels that try `members_port` first, at the same address or another one."""
        there = address or self.address
        return PeerChannels(self._identity, there, self._certificate_pem, members_port)

    @contextlib.contextmanager
    def in_use(self) -> Generator[Self]:
        """Keep the connections open during a long call, even if other channels replace these."""
        self._users += 1
        self._unused.clear()
        try:
            yield self
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def retire(self) -> None:
        """Close the connections after every long call has ended and short ones have had time to."""
        try:
            await asyncio.sleep(BRIEF_CALLS_S)
            await self._unused.wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Cancel every call and close the connections; later calls fail with an AioRpcError."""
        self._closed.set()
        while self._open:
            await self._open.pop().close()

    def _channel(self, max_reply_bytes: int, *more: tuple[str, Any]) -> grpc.aio.Channel:
        options = (*CHANNEL_OPTIONS, ("grpc.max_receive_message_length", max_reply_bytes), *more)
        target = _target(self.address, self.members_port)
        channel = grpc.aio.secure_channel(target, self._credentials, options=options)
        self._open.append(channel)
        return cast("grpc.aio.Channel", ResilientChannel(channel, self._closed.is_set))


def _target(address: Address, members_port: int) -> str:
    """Return gRPC's target; gRPC uses the first address in it that completes a handshake.

    gRPC resolves a host name itself, so only an IP address gets two ports. In a URI, the percent
    sign of a link's scope is written %25.
    """
    family = _family(address.host)
    if not family:
        return str(address)
    ports = [members_port, address.port] if members_port else [address.port]
    places = ",".join(str(Address(address.host, port)) for port in ports)
    return f"{family}:{places}".replace("%", "%25")


def _family(host: str) -> str:
    """Return the URI scheme of gRPC for an IP address; empty if the host is a name."""
    try:
        return f"ipv{ip_address(host).version}"
    except ValueError:
        return ""
