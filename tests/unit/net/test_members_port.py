"""A port at which members alone can shake hands, and the open one beside it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc.aio
import pytest

from jupiterd.net import server as server_module
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.open_port.callers import Callers
from jupiterd.net.open_port.connection_limits import ConnectionLimits
from jupiterd.net.open_port.proxy import Proxy
from jupiterd.net.server import MAX_CONNECTIONS, NodeServer
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.support.net.echo import register
from tests.unit.net.conftest import named_identity, open_border

pytestmark = pytest.mark.net

TIMEOUT_S = 10.0


class Running:
    """A node's server, and the leaves of who is a member."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.leaves: frozenset[bytes] = frozenset()
        self.callers = Callers()
        front = Proxy(ConnectionLimits(lambda _: True), self.callers, lambda *_: None)
        place = LOOPBACK, 0
        self.server = NodeServer(identity, place, open_border(), front, lambda: self.leaves)
        self.server.add(register)
        self.open = Address(LOOPBACK, 0)

    @property
    def members(self) -> Address:
        """Where members alone are let in."""
        return Address(LOOPBACK, self.server.members_port)

    async def asked_by(self, who: Identity, address: Address, members_port: int = 0) -> str:
        """Say hello there; return how the server names the other end of the connection."""
        way = PeerChannels(who, address, self.identity.certificate_pem, members_port)
        try:
            reply = await way.control.Hello(peer_pb2.HelloRequest(), timeout=TIMEOUT_S)
        finally:
            await way.close()
        assert reply.name == who.node_id
        return reply.run_nonce


@pytest.fixture
async def node(identity: Identity) -> AsyncIterator[Running]:
    running = Running(identity)
    running.open = Address(LOOPBACK, await running.server.start())
    yield running
    await running.server.stop(0)


async def test_strangers_shake_hands_at_the_open_port_alone(node: Running, other: Identity) -> None:
    await node.asked_by(other, node.open)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await node.asked_by(other, node.members)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_who_becomes_a_member_is_let_in_at_once_and_who_is_removed_isn_t(
    node: Running, other: Identity, tmp_path: Path
) -> None:
    third = named_identity(tmp_path, "third")
    node.leaves = frozenset([other.certificate_pem, third.certificate_pem])
    await node.asked_by(other, node.members)
    await node.asked_by(third, node.members)
    node.leaves = frozenset([third.certificate_pem])
    await node.asked_by(third, node.members)
    with pytest.raises(grpc.aio.AioRpcError):
        await node.asked_by(other, node.members)


async def test_the_members_port_is_tried_first_and_the_open_one_where_it_refuses(
    node: Running, other: Identity
) -> None:
    port = node.server.members_port
    through_front = await node.asked_by(other, node.open, port)
    assert through_front in node.callers._by_peer or through_front in node.callers._ended
    node.leaves = frozenset([other.certificate_pem])
    direct = await node.asked_by(other, node.open, port)
    assert direct not in node.callers._by_peer
    assert direct not in node.callers._ended


async def test_a_port_that_nobody_listens_at_costs_nothing(node: Running, other: Identity) -> None:
    await node.asked_by(other, node.open, 9)


async def test_silent_connections_to_the_members_port_leave_members_the_open_one(
    node: Running, other: Identity
) -> None:
    node.leaves = frozenset([other.certificate_pem])
    with ExitStack() as held:
        for _ in range(MAX_CONNECTIONS + 20):
            held.enter_context(socket.create_connection((LOOPBACK, node.server.members_port)))
        await node.asked_by(other, node.open, node.server.members_port)


async def test_who_is_removed_is_hung_up_on_and_a_member_s_call_goes_on(
    identity: Identity, other: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "AMONG_MEMBERS", (("grpc.max_connection_age_ms", 300),))
    third, node = named_identity(tmp_path, "third"), Running(identity)
    node.leaves = frozenset([other.certificate_pem, third.certificate_pem])
    await node.server.start()
    member, removed = (
        PeerChannels(who, node.members, identity.certificate_pem) for who in (other, third)
    )
    sent = asyncio.Queue[peer_pb2.Heartbeat]()

    async def beats() -> AsyncIterator[peer_pb2.Heartbeat]:
        while True:
            yield await sent.get()

    async def asked(way: PeerChannels) -> str:
        await asyncio.sleep(0.02)
        reply = await way.control.Hello(peer_pb2.HelloRequest(), timeout=TIMEOUT_S)
        return reply.run_nonce

    try:
        async with asyncio.timeout(2 * TIMEOUT_S):
            call = member.control.Beat(beats())
            answers = aiter(call)
            sent.put_nowait(peer_pb2.Heartbeat(term=1))
            assert (await anext(answers)).term == 1
            first = await asked(member)
            await asked(removed)
            node.leaves = frozenset([other.certificate_pem])
            with suppress(grpc.aio.AioRpcError):
                while True:
                    await asked(removed)
            while await asked(member) == first:
                pass
            sent.put_nowait(peer_pb2.Heartbeat(term=2))
            assert (await anext(answers)).term == 2, "a call that lasts isn't cut off"
            call.cancel()
    finally:
        await member.close()
        await removed.close()
        await node.server.stop(0)
