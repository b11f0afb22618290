"""A connection that is closed under a call, or before it: the caller is told, and goes on."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest

from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

pytestmark = pytest.mark.net

HELLO = peer_pb2.HelloRequest()


async def hello(channels: PeerChannels) -> object:
    return await channels.control.Hello(HELLO, timeout=30, wait_for_ready=True)


async def snapshot(channels: PeerChannels) -> object:
    request = peer_pb2.SnapshotRequest()
    call = channels.control.FetchSnapshot(request, timeout=30, wait_for_ready=True)
    return [chunk async for chunk in call]


async def bring(channels: PeerChannels) -> object:
    async def messages() -> AsyncIterator[Any]:
        yield peer_pb2.BroughtLedger()

    return await channels.control.Bring(messages(), timeout=30, wait_for_ready=True)


Ask = Callable[[PeerChannels], Awaitable[object]]
CALLS = pytest.mark.parametrize("ask", [hello, snapshot, bring])


@asynccontextmanager
async def to_nobody(identity: Identity) -> AsyncGenerator[PeerChannels]:
    """Yield channels to a socket that never says anything."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = Address("127.0.0.1", silent.getsockname()[1])
        channels = PeerChannels(identity, address, identity.certificate_pem)
        yield channels
        await channels.close()


async def begun(ask: Ask, channels: PeerChannels) -> "asyncio.Task[object]":
    task = asyncio.ensure_future(ask(channels))
    for _ in range(10):
        await asyncio.sleep(0)
    return task


@CALLS
async def test_who_waits_when_the_connection_is_closed_is_told(
    identity: Identity, ask: Ask
) -> None:
    async with to_nobody(identity) as channels:
        waiting = await begun(ask, channels)
        await channels.close()
        with pytest.raises(grpc.aio.AioRpcError, match="the link was closed"):
            await waiting


@CALLS
async def test_who_calls_on_a_closed_connection_is_told(identity: Identity, ask: Ask) -> None:
    async with to_nobody(identity) as channels:
        assert channels.control
        await channels.close()
        with pytest.raises(grpc.aio.AioRpcError, match="the link was closed"):
            await ask(channels)


@CALLS
async def test_no_connection_is_made_after_the_close(identity: Identity, ask: Ask) -> None:
    async with to_nobody(identity) as channels:
        await channels.close()
        with pytest.raises(grpc.aio.AioRpcError, match="the link was closed"):
            await ask(channels)


@CALLS
async def test_who_is_cancelled_stays_cancelled(identity: Identity, ask: Ask) -> None:
    async with to_nobody(identity) as channels:
        waiting = await begun(ask, channels)
        waiting.cancel()
        await channels.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@CALLS
async def test_a_caller_that_waits_no_longer_is_told_that(identity: Identity, ask: Ask) -> None:
    async with to_nobody(identity) as channels:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(channels)
