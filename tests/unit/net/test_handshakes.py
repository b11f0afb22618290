"""How many handshakes an address leaves without an answer."""

import asyncio
import errno
import socket
import time

import pytest

from jupiterd.net.handshakes import unanswered
from jupiterd.ports import Address

EACH = 8
ANSWER_S = 0.2


async def test_a_listener_answers_all_even_where_nobody_accepts_yet() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        address = Address(*listener.getsockname())
        assert await unanswered([address, address], EACH, ANSWER_S) == [0, 0]


async def test_a_refusal_is_an_answer() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert await unanswered([Address(*bound.getsockname())], EACH, ANSWER_S) == [0]


async def test_what_the_kernel_drops_is_counted() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # so the kernel answers one or two, and no further one
        (lost,) = await unanswered([Address(*full.getsockname())], EACH, ANSWER_S)
        assert EACH - 2 <= lost < EACH


async def test_a_loop_that_stands_still_meanwhile_loses_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        address = Address(*listener.getsockname())
        trial = asyncio.ensure_future(unanswered([address], EACH, 0.01))
        await asyncio.sleep(0)
        until_s = time.monotonic() + 0.1
        while time.monotonic() < until_s:
            pass
        assert await trial == [0]


async def test_where_nothing_leads_all_are_lost() -> None:
    assert await unanswered([Address("localhost", 1)], EACH, ANSWER_S) == [EACH]


@pytest.mark.parametrize("method", ["connect_ex", "getsockopt"])
async def test_what_our_own_machine_says_of_nobody_is_no_answer(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once where it has no route; later where it has looked for the other one in vain."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        address = Address(*listener.getsockname())
        monkeypatch.setattr(socket.socket, method, lambda *_: errno.EHOSTUNREACH)
        assert await unanswered([address], EACH, ANSWER_S) == [EACH]
