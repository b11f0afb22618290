"""What goes in at one end of a tunnel comes out at the other, for members' keys alone."""

import asyncio
import random
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from jupiterd.net.identity import Identity
from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.tunnels.contexts import accepting_tls, connecting_tls
from jupiterd.net.tunnels.relay import MAX_CONNECTIONS, entrance, exit_of
from jupiterd.ports import Address
from tests.unit.net.conftest import named_identity

pytestmark = pytest.mark.net

PIECE = 700_000
MUCH = 6 << 20
"""More than two relays and the kernel hold."""


@asynccontextmanager
async def echoing() -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A port that sends back what it hears, and what it has heard."""
    heard: list[bytes] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer.transport):
            while data := await reader.read(1 << 16):
                heard.append(data)
                writer.write(data)
                await writer.drain()

    server = await asyncio.start_server(echo, LOOPBACK, 0)
    yield int(server.sockets[0].getsockname()[1]), heard
    server.close()


@asynccontextmanager
async def tunnel(
    port: int, here: Identity, there: Identity, let_in: Identity, ranks: int = 1
) -> AsyncGenerator[tuple[int, int]]:
    """A tunnel from `here` to a port of `there`; yields the ports at both of its ends."""
    accepting = accepting_tls(there, [let_in.certificate_pem])
    with socket.create_server((LOOPBACK, 0)) as listener:
        out = int(listener.getsockname()[1])
        tls = connecting_tls(here, there.certificate_pem)
        async with (
            exit_of(listener, accepting, {let_in.node_id}, port, ranks),
            entrance(Address(LOOPBACK, out), tls) as own,
        ):
            yield own, out


async def answered(port: int, data: bytes) -> bytes:
    """Send something to a port of loopback; return as much of the answer as comes."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(data)
    try:
        async with asyncio.timeout(10.0):
            return await reader.readexactly(len(data))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    finally:
        writer.close()


async def until_full(writer: asyncio.StreamWriter) -> None:
    """Wait until the way takes no more of what is to be sent: it has all, or is full."""
    before = None
    while (left := writer.transport.get_write_buffer_size()) != before:
        before = left
        await asyncio.sleep(0.02)


async def test_what_is_sent_arrives_as_it_was_in_both_directions(tmp_path: Path) -> None:
    here, there = named_identity(tmp_path, "here"), named_identity(tmp_path, "there")
    data = random.Random(1).randbytes(PIECE)
    async with echoing() as (port, _), tunnel(port, here, there, here) as (own, _):
        assert await answered(own, data) == data


async def test_a_key_that_is_not_let_in_gets_nothing_through(tmp_path: Path) -> None:
    here, there, other = (named_identity(tmp_path, who) for who in ("here", "there", "other"))
    async with echoing() as (port, heard), tunnel(port, other, there, here) as (own, out):
        assert await answered(own, b"hello") == b""
        assert await answered(out, b"hello") == b"", "nor does who knows no TLS"
        assert heard == []


async def test_who_does_not_hold_the_key_that_is_dialed_hears_nothing(tmp_path: Path) -> None:
    here, there, other = (named_identity(tmp_path, who) for who in ("here", "there", "other"))
    async with echoing() as (port, heard), tunnel(port, here, other, here) as (_, out):
        tls = connecting_tls(here, there.certificate_pem)
        async with entrance(Address(LOOPBACK, out), tls) as own:
            assert await answered(own, b"hello") == b""
        assert heard == []


async def test_both_ends_close_when_one_does(tmp_path: Path) -> None:
    here, there = named_identity(tmp_path, "here"), named_identity(tmp_path, "there")
    ended = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer.transport):
            await reader.read()
        ended.set()

    server = await asyncio.start_server(hang, LOOPBACK, 0)
    port = int(server.sockets[0].getsockname()[1])
    async with tunnel(port, here, there, here) as (own, _):
        _, writer = await asyncio.open_connection(LOOPBACK, own)
        writer.write(b"x")
        await writer.drain()
        writer.close()
        await asyncio.wait_for(ended.wait(), 10.0)
    server.close()


async def test_all_that_was_sent_before_a_close_arrives(tmp_path: Path) -> None:
    here, there = named_identity(tmp_path, "here"), named_identity(tmp_path, "there")
    closed, heard = asyncio.Event(), asyncio.Queue[int]()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer.transport):
            await closed.wait()
            size = 0
            while data := await reader.read(1 << 20):
                size += len(data)
            heard.put_nowait(size)

    server = await asyncio.start_server(hear, LOOPBACK, 0)
    port = int(server.sockets[0].getsockname()[1])
    async with tunnel(port, here, there, here) as (own, _), asyncio.timeout(60.0):
        _, writer = await asyncio.open_connection(LOOPBACK, own)
        writer.write(bytes(MUCH))
        writer.close()
        await until_full(writer)
        closed.set()
        assert await heard.get() == MUCH
    server.close()


async def test_all_that_is_answered_before_a_close_arrives(tmp_path: Path) -> None:
    here, there = named_identity(tmp_path, "here"), named_identity(tmp_path, "there")

    answering = asyncio.Queue[asyncio.StreamWriter]()

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(MUCH))
        writer.close()
        answering.put_nowait(writer)

    server = await asyncio.start_server(tell, LOOPBACK, 0)
    port = int(server.sockets[0].getsockname()[1])
    async with tunnel(port, here, there, here) as (own, _), asyncio.timeout(60.0):
        reader, writer = await asyncio.open_connection(LOOPBACK, own)
        await until_full(await answering.get())
        assert len(await reader.read()) == MUCH
        writer.close()
    server.close()


async def test_as_many_are_let_through_as_the_ranks_of_a_gang_need(tmp_path: Path) -> None:
    here, there = named_identity(tmp_path, "here"), named_identity(tmp_path, "there")
    async with echoing() as (port, _), tunnel(port, here, there, here, ranks=6) as (_, out):
        entrances = [entrance(Address(LOOPBACK, out), connecting_tls(here, there.certificate_pem))]
        entrances.append(
            entrance(Address(LOOPBACK, out), connecting_tls(here, there.certificate_pem))
        )
        async with entrances[0] as one, entrances[1] as other:
            ports = [one, other] * 6
            ends = [await asyncio.open_connection(LOOPBACK, each) for each in ports]
            assert len(ends) > MAX_CONNECTIONS
            for reader, writer in ends:
                writer.write(b"x")
                assert await asyncio.wait_for(reader.read(1), 10.0) == b"x"
            for _, writer in ends:
                writer.close()


async def test_a_gang_that_ends_while_its_ranks_are_connected_is_no_error(tmp_path: Path) -> None:
    here, there = named_identity(tmp_path, "here"), named_identity(tmp_path, "there")
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    async with echoing() as (port, _):
        async with tunnel(port, here, there, here) as (own, _):
            reader, writer = await asyncio.open_connection(LOOPBACK, own)
            writer.write(b"x")
            assert await reader.read(1) == b"x"
        assert await reader.read() == b""
        writer.close()
        await asyncio.sleep(0)
    assert complaints == []
