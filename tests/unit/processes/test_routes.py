"""Routes: proven by real connects, or named."""

import asyncio
import socket

import pytest

from jupiterd.errors import BadRouteError
from jupiterd.ports import Address
from jupiterd.processes.routes import bind_listener, free_port, listen_probe, prove

pytestmark = pytest.mark.net


async def test_a_listener_that_is_there_is_reached():
    server, port = await listen_probe("127.0.0.1")
    async with server:
        assert await prove([Address("127.0.0.1", port)] * 3) == [None] * 3


def test_a_free_port_can_be_bound_and_is_not_held():
    port = free_port("127.0.0.1")
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


async def test_a_route_that_is_refused_is_named_with_host_interface_and_address():
    listener = bind_listener("127.0.0.1")
    port = listener.getsockname()[1]
    listener.close()
    (error,) = await prove([Address("127.0.0.1", port)])
    assert error is not None
    assert socket.gethostname() in error.message
    assert f"can't reach 127.0.0.1:{port} from lo" in error.message
    assert "(127.0.0.1): connection refused" in error.message
    assert "firewall" in error.hint


async def test_a_route_without_answer_is_given_up():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    target = Address(*listener.getsockname())
    # Fill the backlog, so that the kernel answers no further knock.
    knocks = [asyncio.ensure_future(asyncio.open_connection(*listener.getsockname())) for _ in "12"]
    try:
        proved = await prove([target, target], timeout_s=0.2)
        errors = [error for error in proved if error is not None]
        assert errors
        assert all("no answer within 0.2 s" in error.message for error in errors)
    finally:
        for knock in knocks:
            knock.cancel()
            for writer in [
                r[1]
                for r in await asyncio.gather(knock, return_exceptions=True)
                if isinstance(r, tuple)
            ]:
                writer.close()
        listener.close()


async def test_only_the_bad_routes_are_told():
    server, port = await listen_probe("127.0.0.1")
    gone = bind_listener("127.0.0.1")
    bad = Address(*gone.getsockname())
    gone.close()
    async with server:
        good = Address("127.0.0.1", port)
        first, error, last = await prove([good, bad, good])
    assert (first, last) == (None, None)
    assert error is not None
    assert str(bad) in error.message


async def test_an_address_of_another_machine_cannot_be_listened_on():
    with pytest.raises(BadRouteError, match=r"can't listen on 203\.0\.113\.7"):
        await listen_probe("203.0.113.7")
    with pytest.raises(BadRouteError, match=r"can't listen on 203\.0\.113\.7"):
        bind_listener("203.0.113.7")


def test_a_listener_for_a_worker_has_a_port_of_its_own():
    with bind_listener("127.0.0.1") as first, bind_listener("127.0.0.1") as second:
        assert first.getsockname() != second.getsockname()
        with socket.create_connection(first.getsockname()):
            pass
