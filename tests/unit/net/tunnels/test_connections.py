"""Whoever was accepted is hung up on when the listener ends, whether served by then or not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.tunnels.connections import Connections, Serve

pytestmark = pytest.mark.net

SOON_S = 10.0


@asynccontextmanager
async def listening(serve: Serve) -> AsyncGenerator[tuple[Connections, asyncio.StreamReader]]:
    """Accept one connection; yields as soon as it is accepted, before it is served."""
    accepted, is_accepted = Connections(serve), asyncio.Event()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.take(reader, writer)
        is_accepted.set()

    server = await asyncio.start_server(take, LOOPBACK, 0)
    port = int(server.sockets[0].getsockname()[1])
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        async with asyncio.timeout(SOON_S):
            await is_accepted.wait()
            yield accepted, reader
    finally:
        writer.transport.abort()
        server.close()
        await accepted.end()


async def until_hung_up(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        assert await reader.read() == b""


async def test_a_connection_is_hung_up_on_that_is_served_for_ever() -> None:
    is_served = asyncio.Event()

    async def serve(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        is_served.set()
        await asyncio.Event().wait()

    async with listening(serve) as (accepted, reader):
        await is_served.wait()
        assert len(accepted) == 1
        await accepted.end()
        await until_hung_up(reader)
        assert len(accepted) == 0


async def test_a_connection_is_hung_up_on_whose_task_is_ended_before_it_has_run() -> None:
    served: list[bool] = []

    async def serve(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        served.append(True)

    accepted = Connections(serve)

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.take(reader, writer)
        for task in accepted._open:
            task.cancel()

    server = await asyncio.start_server(take, LOOPBACK, 0)
    port = int(server.sockets[0].getsockname()[1])
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    async with asyncio.timeout(SOON_S):
        await until_hung_up(reader)
    writer.transport.abort()
    server.close()
    assert served == []


async def test_who_comes_when_it_is_over_is_hung_up_on_and_never_served() -> None:
    served: list[bool] = []

    async def serve(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        served.append(True)

    accepted = Connections(serve)
    await accepted.end()
    server = await asyncio.start_server(accepted.take, LOOPBACK, 0)
    reader, writer = await asyncio.open_connection(
        LOOPBACK, int(server.sockets[0].getsockname()[1])
    )
    async with asyncio.timeout(SOON_S):
        await until_hung_up(reader)
    writer.transport.abort()
    server.close()
    assert served == []


async def test_what_goes_wrong_is_logged_and_the_connection_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def serve(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        raise ValueError("odd")

    async with listening(serve) as (_, reader):
        await until_hung_up(reader)
    assert "connection_failed" in caplog.text
