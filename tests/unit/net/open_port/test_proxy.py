"""What anybody may connect to: bytes go through as they are, for few connections of an address."""

import asyncio
import errno
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

import pytest

from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.open_port import proxy as front_module
from jupiterd.net.open_port.callers import Callers
from jupiterd.net.open_port.connection_limits import EACH_STRANGER, ConnectionLimits
from jupiterd.net.open_port.proxy import Proxy, host_of, listening_socket

pytestmark = pytest.mark.net

SOON_S = 10.0
PIECE = bytes(range(256)) * 4000

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Behind:
    """A server that sends back what it hears, and counts who came."""

    def __init__(self) -> None:
        self.callers = Callers()
        self.refused: list[tuple[str, str]] = []
        self.came: list[str] = []
        self.answering: set[asyncio.Task[None] | None] = set()

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = "ipv4:{}:{}".format(*writer.get_extra_info("peername"))
        self.answering.add(asyncio.current_task())
        self.came.append(self.callers.host_of(peer))
        with closing(writer.transport), suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if data.startswith(b"\0"):
                    self.callers.note_call(peer)
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def fronting(behind: Behind) -> AsyncGenerator[int]:
    """Yield the port of a front that has such a server behind it."""
    server = await asyncio.start_server(behind.echo, LOOPBACK, 0)
    listener = listening_socket(LOOPBACK, 0)
    refused = behind.refused
    front = Proxy(
        ConnectionLimits(lambda _: False),
        behind.callers,
        lambda host, why: refused.append((host, why)),
    )
    await front.start(listener, int(server.sockets[0].getsockname()[1]))
    try:
        yield int(listener.getsockname()[1])
    finally:
        await front.stop()
        await front.stop()
        server.close()
        await asyncio.gather(*(task for task in behind.answering if task))


async def end_of(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the other side hangs up, however it does."""
    heard = b""
    async with asyncio.timeout(SOON_S):
        try:
            while data := await reader.read(1 << 16):
                heard += data
        except ConnectionError:
            pass
    return heard


async def test_bytes_go_both_ways_as_they_were_and_the_caller_is_known() -> None:
    behind = Behind()
    async with fronting(behind) as port:
        reader, writer = await asyncio.open_connection(LOOPBACK, port, local_addr=("127.0.0.1", 0))
        writer.write(PIECE)
        async with asyncio.timeout(SOON_S):
            assert await reader.readexactly(len(PIECE)) == PIECE
        writer.close()
    assert behind.came == ["127.0.0.1"]
    assert behind.refused == []


async def test_one_address_holds_a_few_connections_and_is_told_of() -> None:
    behind = Behind()
    async with fronting(behind) as port:
        held = [await asyncio.open_connection(LOOPBACK, port) for _ in range(EACH_STRANGER)]
        for reader, writer in held:
            writer.write(b"\0")
            async with asyncio.timeout(SOON_S):
                assert await reader.readexactly(1) == b"\0"
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        assert await end_of(reader) == b""
        writer.close()
        assert [host for host, _ in behind.refused] == [LOOPBACK]
        held[0][1].close()
        await held[0][1].wait_closed()
        async with asyncio.timeout(SOON_S):
            while True:
                reader, writer = await asyncio.open_connection(LOOPBACK, port)
                writer.write(b"\0")
                try:
                    assert await reader.readexactly(1) == b"\0"
                    break
                except (asyncio.IncompleteReadError, ConnectionError):
                    writer.close()
        for _, each in (*held, (reader, writer)):
            each.close()


async def test_who_says_nothing_is_hung_up_on_and_reaches_no_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front_module, "SILENT_S", 0.05)
    behind = Behind()
    async with fronting(behind) as port:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        assert await end_of(reader) == b""
        writer.close()
    assert behind.came == []


async def test_who_asks_nothing_is_hung_up_on_and_who_asks_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front_module, "UNASKED_S", 0.1)
    behind = Behind()
    async with fronting(behind) as port:
        asking, talking = [await asyncio.open_connection(LOOPBACK, port) for _ in range(2)]
        asking[1].write(b"\0a call")
        talking[1].write(b"only a handshake")
        assert await end_of(talking[0]) == b"only a handshake"
        asking[1].write(b", still here")
        async with asyncio.timeout(SOON_S):
            assert await asking[0].readexactly(19) == b"\0a call, still here"
        asking[1].close()
        talking[1].close()


async def test_who_is_gone_before_it_is_passed_on_leaves_no_connection_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, made = asyncio.open_connection, list[asyncio.StreamWriter]()

    async def passing(*place: object, **more: object) -> object:
        ends = await connect(*place, **more)  # type: ignore[arg-type]
        made.append(ends[1])
        return ends

    def gone(_near: socket.socket) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(asyncio, "open_connection", passing)
    monkeypatch.setattr(front_module, "_bound_waiting", gone)
    async with fronting(Behind()) as port:
        reader, writer = await connect(LOOPBACK, port)
        writer.write(b"\0")
        assert await end_of(reader) == b""
        writer.close()
        assert [far.transport.is_closing() for far in made] == [True]


async def never_reading(port: int) -> None:
    """Ask again and again and read no answer, until the other side hangs up."""
    with socket.create_connection((LOOPBACK, port)) as near:
        near.setblocking(False)
        while True:
            await asyncio.get_running_loop().sock_sendall(near, b"\0" + PIECE)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems wait for ever")
async def test_who_has_asked_and_takes_no_answer_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front_module, "UNREAD_S", 0.2)
    async with fronting(Behind()) as port, asyncio.timeout(SOON_S):
        with pytest.raises(ConnectionError):
            await never_reading(port)


@pytest.mark.parametrize(
    ("peername", "host"),
    [
        (("10.0.0.9", 5), "10.0.0.9"),
        (("::ffff:10.0.0.9", 5, 0, 0), "10.0.0.9"),
        (("2001:db8::9", 5, 0, 0), "2001:db8::9"),
        (("fe80::9", 5, 0, 999_999), "fe80::9"),
        (None, ""),
    ],
)
def test_an_address_is_written_in_one_way(peername: tuple[object, ...] | None, host: str) -> None:
    assert host_of(peername) == host
