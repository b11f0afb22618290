"""How long it takes to reach an address."""

import asyncio
import socket

from jupiterd.net.connect_time import connect_time_s
from jupiterd.ports import Address


async def test_a_listener_is_reached_in_no_time() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    took_s = await connect_time_s(Address("127.0.0.1", port), 1.0)
    assert took_s is not None
    assert 0.0 < took_s < 1.0
    server.close()
    await server.wait_closed()


async def test_where_nobody_listens_there_is_no_time() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert await connect_time_s(Address("127.0.0.1", bound.getsockname()[1]), 1.0) is None


async def test_a_name_is_never_looked_up() -> None:
    assert await connect_time_s(Address("localhost", 1), 1.0) is None
