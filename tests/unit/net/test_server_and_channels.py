import asyncio
import socket

import pytest

from jupiterd.errors import Bug, PortInUseError
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.net.server import PeerServer, listening_host
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.support.net.echo import register
from tests.unit.net.conftest import open_border

pytestmark = pytest.mark.net

HELLO = peer_pb2.HelloRequest()


async def started(identity: Identity, host: str, port: int = 0) -> tuple[PeerServer, int]:
    server = PeerServer(identity, host, port, open_border())
    server.add(register)
    return server, await server.start()


async def test_a_taken_port_is_named(identity: Identity, other: Identity) -> None:
    server, port = await started(identity, "127.0.0.1")
    with pytest.raises(PortInUseError, match=f"port {port} on 127.0.0.1 is taken by another pro"):
        await started(other, "127.0.0.1", port)
    await server.stop(0)


async def test_the_open_server_answers_on_ipv4_and_ipv6(
    identity: Identity, other: Identity
) -> None:
    host = listening_host(loopback_only=False)
    server, port = await started(identity, host)
    for reached in ("127.0.0.1", "::1") if host == "::" else ("127.0.0.1",):
        channels = PeerChannels(other, Address(reached, port), identity.certificate_pem)
        assert (await channels.heartbeat.Hello(HELLO, timeout=5)).name == other.node_id
        await channels.close()
    await server.stop(0)


async def test_the_loopback_server_is_deaf_to_other_addresses(identity: Identity) -> None:
    server, port = await started(identity, listening_host(loopback_only=True))
    with socket.socket() as probe:
        # 127.0.0.2 is this machine too, and not the address that was bound.
        assert probe.connect_ex(("127.0.0.2", port)) != 0
    await server.stop(0)


async def test_heartbeat_and_control_travel_on_connections_of_their_own(
    identity: Identity, other: Identity
) -> None:
    server, port = await started(identity, "127.0.0.1")
    channels = PeerChannels(other, Address("127.0.0.1", port), identity.certificate_pem)
    first, again, beside = await asyncio.gather(
        channels.heartbeat.Hello(HELLO, timeout=5),
        channels.heartbeat.Hello(HELLO, timeout=5),
        channels.control.Hello(HELLO, timeout=5),
    )
    assert first.run_nonce == again.run_nonce != beside.run_nonce
    await channels.close()
    await server.stop(0)


async def test_a_stopped_server_frees_its_port_and_may_be_stopped_again(
    identity: Identity,
) -> None:
    server, port = await started(identity, "127.0.0.1")
    await server.stop(0)
    await server.stop(0)
    second, same = await started(identity, "127.0.0.1", port)
    assert same == port
    await second.stop(0)


async def test_a_running_server_takes_no_further_service(identity: Identity) -> None:
    server, _ = await started(identity, "127.0.0.1")
    with pytest.raises(Bug):
        server.add(register)
    await server.stop(0)
