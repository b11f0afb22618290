"""A peer that is reached in two ways: straight, and through a relay on another port."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import grpc.aio
import pytest

from jupiterd.cluster.links.links import Links
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.links import path_monitor
from jupiterd.daemon.links.peers import Peer
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId
from jupiterd.net import channels
from jupiterd.net.tunnels.connections import Connections
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import TIMEOUT_S, address_of, serving, unite


class Relay:
    """Passes bytes on, until it is cut."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._connections = Connections(self._join)
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        self._server = await asyncio.start_server(self._connections.take, "127.0.0.1", 0)
        return Address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        self._connections.hang_up()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection(self._target.host, self._target.port)
            try:
                await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
            finally:
                back.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def reached_twice(folder: Path) -> AsyncGenerator[tuple[Node, Node, Peer, Relay]]:
    """Two nodes; the first is linked to the second through a relay and knows the straight way."""
    async with serving(folder, "one") as one, serving(folder, "other") as other:
        await unite(one, other)
        relay = Relay(address_of(other))
        through = await relay.start()
        certificate = other.identity.certificate_pem
        peer = await one.peers.link(other.identity.node_id, "other", through, certificate)
        one.peers.learn(peer, address_of(other))
        watching = asyncio.ensure_future(one.path_monitor.run())
        try:
            yield one, other, peer, relay
        finally:
            watching.cancel()
            relay.cut()
            await asyncio.wait([watching])


async def until_used(peer: Peer, address: Address) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while peer.address != address:  # noqa: ASYNC110 - a real daemon is watched
            await asyncio.sleep(0.02)


async def says_hello(way: channels.PeerChannels) -> bool:
    try:
        await way.control.Hello(peer_pb2.HelloRequest(), timeout=2)
    except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.CancelledError):
        return False
    return True


async def test_when_the_way_in_use_is_cut_new_calls_go_another(tmp_path: Path) -> None:
    async with reached_twice(tmp_path) as (_, other, peer, relay):
        assert peer.address != address_of(other)
        relay.cut()
        await until_used(peer, address_of(other))
        assert await says_hello(peer.channels)
        assert peer.links.reason.endswith("doesn't answer")


async def test_what_runs_on_the_old_way_may_come_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "BRIEF_CALLS_S", 0.0)
    async with reached_twice(tmp_path) as (one, other, peer, _):
        with peer.channels.in_use() as old:
            peer.links.use(str(address_of(other)), "for the test")
            retiring = asyncio.ensure_future(one.peers.move(peer, address_of(other)).retire())
            assert peer.channels is not old
            assert await says_hello(peer.channels)
            assert await says_hello(old), "it is still open"
            assert not retiring.done()
        await asyncio.wait_for(retiring, TIMEOUT_S)
        assert not await says_hello(old)
        assert await says_hello(peer.channels)


@pytest.mark.parametrize("decides", [True, False])
async def test_one_end_chooses_and_the_other_follows(tmp_path: Path, decides: bool) -> None:
    async with reached_twice(tmp_path) as (one, other, peer, _):
        before = peer.address
        peer.links = Links(decides=decides)
        for address in (before, address_of(other)):
            one.peers.learn(peer, address)
        peer.links.use(str(before), "it answered first")
        one.path_monitor.note_preferred(other.identity.node_id, str(address_of(other)))
        follows = peer.address == address_of(other)
        assert follows is not decides
        assert peer.links.reason == ("it answered first" if decides else "the other end chose it")


async def test_who_cannot_follow_yet_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_monitor, "ANNOUNCE_AGAIN_S", 0.1)
    async with reached_twice(tmp_path) as (one, other, peer, _):
        heard: list[str] = []

        def hear(_: NodeId, text: str) -> bool:
            heard.append(text)
            return len(heard) > 2

        monkeypatch.setattr(other.path_monitor, "note_preferred", hear)
        monkeypatch.setattr(peer, "source", "127.0.0.1")
        peer.links = Links(decides=True)
        for address in (peer.address, address_of(other)):
            one.peers.learn(peer, address)
        peer.links.use(str(peer.address), "it answered first")
        async with asyncio.timeout(TIMEOUT_S):
            while len(heard) < 3:  # noqa: ASYNC110 - a real daemon is watched
                await asyncio.sleep(0.02)


async def test_what_is_no_address_or_no_way_is_no_choice(tmp_path: Path) -> None:
    async with reached_twice(tmp_path) as (one, other, peer, _):
        before = peer.address
        for text in ("", "[", "192.0.2.7:1"):
            request = peer_pb2.UsePathRequest(address=text)
            await other.peers.require(one.identity.node_id).channels.control.UsePath(request)
        assert peer.address == before


async def test_the_other_ends_interface_counts_too(tmp_path: Path) -> None:
    elsewhere = Address("192.0.2.7", 1)  # ways within the machine are told as such
    async with reached_twice(tmp_path) as (one, _, peer, __):
        for told, kind in ((int(InterfaceKind.WIFI), "Wi-Fi"), (99, "container")):
            peer.address_kinds = {str(elsewhere): told}
            one.peers.learn(peer, elsewhere)
            kinds = {way["target"]: way["kind"] for way in peer.links.to_plain(now_s())}
            assert kinds[str(elsewhere)] == kind, "a kind that nobody knows is the least"
            assert kinds[str(peer.address)] == "loopback"
