import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from jupiterd.errors import ConnectionRefusedByPeerError, PeerUnreachableError
from jupiterd.net.channels import PeerChannels
from jupiterd.net.credentials import peek_certificate
from jupiterd.net.identity import Identity, node_id_of
from jupiterd.net.server import PeerServer
from jupiterd.ports import Address
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2
from tests.support.net.echo import register
from tests.unit.net.conftest import named_identity, open_border

pytestmark = pytest.mark.net

TIMEOUT_S = 10.0


@pytest.fixture
async def address(identity: Identity) -> AsyncIterator[Address]:
    server = PeerServer(identity, "127.0.0.1", 0, open_border())
    server.add(register)
    yield Address("127.0.0.1", await server.start())
    await server.stop(0)


async def hello(channels: PeerChannels) -> peer_pb2.HelloReply:
    try:
        return await channels.control.Hello(peer_pb2.HelloRequest(), timeout=5)
    finally:
        await channels.close()


async def test_the_server_knows_a_caller_it_never_saw_by_its_key(
    address: Address, identity: Identity, other: Identity
) -> None:
    reply = await hello(PeerChannels(other, address, identity.certificate_pem))
    assert reply.name == other.node_id


async def test_a_client_refuses_every_key_but_the_one_it_expects(
    address: Address, other: Identity, tmp_path: Path
) -> None:
    # Same names, same pairing root: nothing but the key tells them apart.
    expected = named_identity(tmp_path, "expected")
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await hello(PeerChannels(other, address, expected.certificate_pem))
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "CERTIFICATE_VERIFY_FAILED" in (failure.value.details() or "")
    assert isinstance(from_rpc(failure.value, "expected"), PeerUnreachableError)


async def test_a_caller_without_a_certificate_is_refused(
    address: Address, identity: Identity
) -> None:
    channel = grpc.aio.secure_channel(
        str(address),
        grpc.ssl_channel_credentials(root_certificates=identity.certificate_pem),
        options=[("grpc.ssl_target_name_override", "node.jupiter.internal")],
    )
    async with channel:
        call = channel.unary_unary("/jupiter.v1.Peer/Hello")
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call(b"", timeout=5)
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_peeking_shows_the_certificate_to_pin(address: Address, identity: Identity) -> None:
    shown = await peek_certificate(address, 5)
    assert shown == identity.certificate_pem
    assert node_id_of(shown) == identity.node_id


async def test_peeking_at_a_port_where_nothing_listens_says_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it meanwhile
        nobody = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConnectionRefusedByPeerError, match="nothing listens"):
            await peek_certificate(nobody, 5)


async def test_peeking_at_something_silent_gives_up_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = Address("127.0.0.1", silent.getsockname()[1])
        with pytest.raises(PeerUnreachableError, match="didn't answer") as failure:
            await peek_certificate(address, 0.05)
    assert not isinstance(failure.value, ConnectionRefusedByPeerError)


async def test_peeking_at_something_that_speaks_no_tls_fails_cleanly() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ready\r\n" * 10)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(PeerUnreachableError, match="can't be reached"):
            await peek_certificate(Address("127.0.0.1", port), 5)


async def test_peeking_at_something_that_hangs_up_fails_cleanly() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(PeerUnreachableError, match="can't be reached"):
            await peek_certificate(Address("127.0.0.1", port), 5)


async def test_what_was_peeked_with_leaves_no_garbage(address: Address) -> None:
    await peek_certificate(address, 5)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            await peek_certificate(address, 5)
        async with asyncio.timeout(TIMEOUT_S):  # the other sides hear of it a moment later
            while len(gc.get_objects()) - before >= 200:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
    finally:
        gc.enable()
