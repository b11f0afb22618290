"""A neighbour in a ring dials once the other really listens."""

import asyncio
import os
import socket

from jupiterd.daemon.executor import ring_socket
from jupiterd.protocol.frames import RankListening

SOON_S = 0.1


def _bound() -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", 0))
    return made


async def _is_passed_on_once_it_listens(ring: socket.socket, told: RankListening) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(ring_socket.wait_for(os.getpid(), told))
        finished, _ = await asyncio.wait([waiting], timeout=SOON_S)
        assert not finished
        ring.listen()


async def test_the_word_of_a_rank_is_passed_on_once_it_listens() -> None:
    with _bound() as ring:
        port = ring.getsockname()[1]
        await _is_passed_on_once_it_listens(ring, RankListening(port))


async def test_a_socket_that_only_holds_the_port_is_not_the_rings() -> None:
    with _bound() as held, socket.socket() as ring:
        held.listen()
        ring.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        ring.bind(held.getsockname())
        told = RankListening(held.getsockname()[1], held=1)
        await _is_passed_on_once_it_listens(ring, told)


async def test_a_process_that_has_gone_is_not_waited_for() -> None:
    gone = 2**22 - 1
    await asyncio.wait_for(ring_socket.wait_for(gone, RankListening(1)), 1)
