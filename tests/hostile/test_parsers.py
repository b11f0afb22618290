"""Everything that a stranger's bytes are read by, given odd ones.

Where a stranger's bytes come in, and what reads them first:

    the certificate of whoever connects, or answers    TLS, then identity.node_id_of     here
    what answers at an address, TLS or not             credentials.peek_certificate      here
    HTTP/2 and gRPC frames                             grpc's core; bounds in server     test_siege
    Hello and Join, requests                           border, protobuf, peer_service    here
    every other request                                border: refused before it is read test_siege
    Hello's and Join's replies, from any server        greeter, told                     here
    the ledger a newcomer fetches                      ledger_transfer, verification     here (the
        calls), tests/unit/cluster (entries, snapshots)
    addresses that others tell                         told                              here
    multicast DNS: packets, names, addresses           zeroconf, mdns                    here
    the file of cached peers                           address_book                      here
    --peer, --join                                     settings, tokens       here, tests/unit
    errors that a server answers with                  failures                          here
    all of these, on their way to people               told, logs                        here

What members say (heartbeats, manifests, work) is read after the roster was asked; heartbeats are
here all the same, since each reaches every daemon twice a second.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import msgpack
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from zeroconf import DNSIncoming
from zeroconf.asyncio import AsyncZeroconf

from jupiterd.cluster.values.rate_limit import Rate
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.links.address_book import load_addresses
from jupiterd.daemon.links.dial_schedule import Attempt
from jupiterd.daemon.links.seen_clusters import SeenClusters, from_message
from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.logs import MAX_CHARACTERS, KeyValueFormatter
from jupiterd.daemon.runtime.untrusted_input import sanitized_address, sanitized_text
from jupiterd.errors import JupiterError, PeerUnreachableError, RefusedError
from jupiterd.net import call_guard, mdns
from jupiterd.net.channels import PeerChannels
from jupiterd.net.credentials import peek_certificate, server_credentials
from jupiterd.net.identity import Identity, _pairing_root_key, node_id_of, pairing_root_pem
from jupiterd.net.mdns import MdnsDiscovery
from jupiterd.ports import Address
from jupiterd.protocol.call_errors import CODE_KEY, HINT_KEY, from_rpc
from jupiterd.rpc import peer_pb2
from tests.hostile.attack import announcement
from tests.hostile.fuzzing import damaged, examples, fuzz, odd_text
from tests.support.daemon.two_nodes import address_of, lead, serving, unite
from tests.unit.net.conftest import named_identity

pytestmark = pytest.mark.net

KEYS: dict[str, Callable[[], Any]] = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=10,
)
ids = st.one_of(st.sampled_from(["", "a" * 32, "A" * 32, "a" * 31, "g" * 32]), odd_text)
uint64, uint32 = st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)
summaries = st.builds(
    peer_pb2.ClusterSummary, cluster=ids, label=odd_text, blank=st.booleans(), open=st.booleans(),
    leader=ids, term=uint64, members=uint32,
)  # fmt: skip
hellos = st.builds(
    peer_pb2.HelloRequest, protocol=uint32, summary=summaries, name=odd_text, port=uint32
)
hello_replies = st.builds(
    peer_pb2.HelloReply, protocol=uint32, summary=summaries, name=odd_text, run_nonce=odd_text,
    member=st.booleans(), member_addresses=st.lists(odd_text, max_size=9),
)  # fmt: skip
join_replies = st.builds(
    peer_pb2.JoinReply, decision=st.integers(0, 9), reason=odd_text, cluster=ids, leader=ids,
    leader_addresses=st.lists(odd_text, max_size=9), proof=st.binary(max_size=40),
)  # fmt: skip


def certificate_of(key: Any, name: str = "node.jupiter.internal") -> bytes:
    """Return what everybody can make: a leaf of the pairing root, for any key and any name."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    example = x509.load_pem_x509_certificate(pairing_root_pem())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(example.issuer)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(example.not_valid_before_utc)
        .not_valid_after(example.not_valid_after_utc)
    )
    signed = builder.sign(_pairing_root_key(), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_is_not_p256_is_nobody(kind: str) -> None:
    with pytest.raises(RefusedError, match="isn't P-256"):
        node_id_of(certificate_of(KEYS[kind]()))


def test_the_name_in_a_certificate_is_nobody_s() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    assert node_id_of(certificate_of(key)) == node_id_of(certificate_of(key, "somebody else"))


@examples(300)
@given(st.one_of(st.binary(), damaged(pairing_root_pem())))
def test_odd_certificates_are_refused(raw: bytes) -> None:
    try:
        node_id_of(raw)
    except RefusedError:
        return
    assert b"CERTIFICATE" in raw


async def test_an_address_where_something_else_answers_is_unreachable() -> None:
    said = b""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    hello = bytes.fromhex("160303007a0200007603031122334455667788")

    async def peek(raw: bytes) -> None:
        nonlocal said
        said = raw
        with pytest.raises(PeerUnreachableError):
            await peek_certificate(address, 5.0)

    await fuzz(60, st.one_of(st.binary(max_size=400), damaged(hello)), peek)
    server.close()
    await server.wait_closed()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one stranger try as often as a test wants."""
    often = Rate(1e9, 1e9)
    monkeypatch.setattr(call_guard, "EACH_STRANGER", often)
    monkeypatch.setattr(call_guard, "ALL_STRANGERS", often)


RAW: dict[str, bytes] = {
    "Hello": peer_pb2.HelloRequest(
        protocol=1,
        summary=peer_pb2.ClusterSummary(cluster="a" * 32, label="home"),
        name="x",
        port=9,
    ).SerializeToString(),
    "AskRoster": peer_pb2.RosterRequest(cluster="a" * 32).SerializeToString(),
    "Join": peer_pb2.JoinRequest(
        name="x", port=9, certificate_pem=pairing_root_pem(), token_id="0" * 16, proof=bytes(32)
    ).SerializeToString(),
}
KINDS = {"malformed", "too-large", "bad-certificate", "bad-token", "not-let-in"}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("verb", RAW)
async def test_odd_requests_of_strangers_are_refused_or_answered(tmp_path: Path, verb: str) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        await one.commands.execute_here("cluster.close", {})
        address, stranger = address_of(one), named_identity(tmp_path, "stranger")
        way = PeerChannels(stranger, address, one.identity.certificate_pem)
        call: Any = way._channel(1 << 20).unary_unary(f"/jupiter.v1.Peer/{verb}", bytes, bytes)

        async def ask(raw: bytes) -> None:
            try:
                await call(raw, timeout=5)
            except grpc.aio.AioRpcError as error:
                told = from_rpc(error, "one")
                assert told.code in KINDS, told.message
                assert len(told.message) < 200

        odd: list[st.SearchStrategy[bytes]] = [st.binary(), damaged(RAW[verb])]
        odd += [hellos.map(peer_pb2.HelloRequest.SerializeToString)] if verb == "Hello" else []
        await fuzz(150, st.one_of(odd), ask)
        assert set(one.refusals.to_plain()) <= KINDS
        assert list(one.replica.state.members) == [one.identity.node_id]
        assert len(one.handshake.addresses) <= 256
        await way.close()


@examples(300)
@given(summaries)
def test_a_stranger_s_cluster_is_one_or_refused(message: peer_pb2.ClusterSummary) -> None:
    try:
        summary = from_message(message)
    except RefusedError:
        return
    assert summary.title.isprintable()
    assert len(summary.title) < 100
    assert summary.leader is None or len(summary.leader) == 32


class Impostor:
    """A server with a key of its own that answers every call with given bytes."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.replies: dict[str, list[bytes]] = {}


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, impostor: Impostor) -> None:
        self._impostor = impostor

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        name = str(handler_call_details.method).rpartition("/")[2]

        async def answers(request: bytes, context: Any) -> AsyncIterator[bytes]:
            for reply in self._impostor.replies.get(name, [b""]):
                yield reply

        return grpc.unary_stream_rpc_method_handler(answers)


@asynccontextmanager
async def impostor(folder: Path) -> AsyncIterator[tuple[Impostor, Address]]:
    """Run one on a port of its own."""
    fake = Impostor(named_identity(folder, "impostor"))
    server = grpc.aio.server(handlers=[_Handlers(fake)])
    port = server.add_secure_port("127.0.0.1:0", server_credentials(fake.identity))
    await server.start()
    yield fake, Address("127.0.0.1", port)
    await server.stop(0)


def assert_untouched(node: Node, cluster: str) -> None:
    assert node.replica.cluster == cluster
    assert list(node.peers) == []
    assert node.handshake.joining.pending_reason.isprintable()
    assert len(node.handshake.joining.pending_reason) <= 400
    assert len(node.handshake.addresses) <= 256


async def test_a_server_that_answers_oddly_moves_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as one, impostor(tmp_path) as (fake, address):
        cluster = one.replica.cluster
        good = peer_pb2.HelloReply(
            summary=peer_pb2.ClusterSummary(cluster="0" * 32, open=True, members=9)
        ).SerializeToString()
        joined = peer_pb2.JoinReply(
            decision=peer_pb2.JoinReply.ADMITTED, cluster="0" * 32, leader="a" * 32
        ).SerializeToString()
        raw_hello = hello_replies.map(peer_pb2.HelloReply.SerializeToString)
        raw_join = join_replies.map(peer_pb2.JoinReply.SerializeToString)
        chunk = peer_pb2.SnapshotChunk(data=msgpack.packb([b"x", b"y"])).SerializeToString()
        page = peer_pb2.ExchangeReply(
            have=[peer_pb2.WriterTip(writer="x", index=2)], entries=[b"x", b""], more=True
        ).SerializeToString()
        replies = st.fixed_dictionaries(
            {
                "Hello": st.one_of(st.just(good), raw_hello, damaged(good), st.binary()),
                "Join": st.one_of(st.just(joined), raw_join, damaged(joined), st.binary()),
                "FetchSnapshot": st.one_of(st.just(b""), damaged(chunk), st.binary()),
                "Exchange": st.one_of(st.just(b""), damaged(page), st.binary()),
            }
        )

        async def greet(said: dict[str, bytes]) -> None:
            fake.replies = {verb: [reply] for verb, reply in said.items()}
            one.handshake.seen = SeenClusters()
            await one.handshake._greet(address, Attempt(now_s()))
            assert_untouched(one, cluster)

        caplog.set_level(logging.WARNING)
        await fuzz(120, replies, greet)
        assert [record for record in caplog.records if record.exc_info] == []


async def test_a_server_that_talks_without_end_is_cut_off(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, impostor(tmp_path) as (fake, address):
        cluster = one.replica.cluster
        long = peer_pb2.HelloReply(
            summary=peer_pb2.ClusterSummary(cluster="0" * 32, open=True, members=9),
            member_addresses=["192.0.2.1:1"] * 10_000,
        )
        fake.replies = {"Hello": [long.SerializeToString()]}
        await one.handshake._greet(address, Attempt(now_s()))
        assert_untouched(one, cluster)
        assert one.handshake.seen.within() == []


HARDWARE = ("system", "machine", "cpu", "cores", "ram_bytes", "engines", "on_mains")
abouts = st.builds(
    peer_pb2.About, run_nonce=odd_text, name=odd_text, addresses=st.lists(odd_text, max_size=12),
    hardware=st.one_of(
        st.binary(max_size=5000),
        anything.map(msgpack.packb),
        st.fixed_dictionaries(
            dict.fromkeys(HARDWARE, anything) | {"gpus": st.lists(anything, max_size=1)}
        ).map(msgpack.packb),
    ),
)  # fmt: skip
heartbeats = st.builds(
    peer_pb2.Heartbeat, term=st.integers(0, 9), leader=ids, head=odd_text, stability=uint32,
    loop_lag_s=st.floats(), ages_ms=st.dictionaries(uint64, uint32, max_size=4),
    members_alive=uint32, about=abouts,
    telemetry=st.one_of(st.binary(max_size=5000), anything.map(msgpack.packb)),
)  # fmt: skip


async def test_odd_heartbeats_of_a_member_change_nothing_that_people_see(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = one.peers.require(other.identity.node_id)

        async def hear(message: peer_pb2.Heartbeat) -> None:
            message.cluster = one.replica.cluster
            one.heartbeats.heard(other.identity.node_id, message)
            for text in (peer.name, peer.run_nonce, *peer.addresses):
                assert text.isprintable()
                assert len(text) <= 80
            assert len(peer.addresses) <= 8

        await fuzz(300, heartbeats, hear)


@examples(300)
@given(st.binary(max_size=600))
def test_odd_multicast_packets_are_survived(raw: bytes) -> None:
    DNSIncoming(raw).answers()


@examples(300)
@given(damaged(announcement(1, 2)))
def test_damaged_announcements_are_survived(raw: bytes) -> None:
    DNSIncoming(raw).answers()


async def test_odd_names_in_announcements_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdns, "RESOLVE_TIMEOUT_S", 0.001)
    discovery = MdnsDiscovery(loopback_only=True)
    discovery._zeroconf = AsyncZeroconf(interfaces=["127.0.0.1"])

    async def resolve(name: str) -> None:
        assert await discovery._resolve(name) == []

    names = st.one_of(odd_text, odd_text.map(lambda text: f"{text}.{mdns.SERVICE_TYPE}"))
    await fuzz(40, names, resolve)
    await discovery.close()


@pytest.mark.full
@examples(300)
@given(
    st.one_of(
        st.binary(),
        anything.map(lambda value: json.dumps(value).encode()),
        st.lists(st.fixed_dictionaries({"host": anything, "port": anything})).map(
            lambda rows: json.dumps(rows).encode()
        ),
        st.just(b"[" * 20_000),
        st.just(b'[{"host": "x", "port": Infinity}]'),
    )
)
def test_an_odd_file_of_cached_peers_is_nothing_or_addresses(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "peers.json"
    path.write_bytes(raw)
    for address in load_addresses(path):
        assert 0 < address.port < 65536


@examples(500)
@given(odd_text)
def test_an_odd_address_is_an_address_or_a_value_error(text: str) -> None:
    for read in (parse_address, sanitized_address):
        try:
            address = read(text)
        except ValueError:
            continue
        assert address.host
        assert 0 < address.port < 65536


@examples(300)
@given(odd_text, odd_text, st.binary(max_size=50))
def test_an_odd_error_of_another_machine_is_an_error_of_ours(
    details: str, code: str, hint: bytes
) -> None:
    trailing = grpc.aio.Metadata((CODE_KEY, code), (HINT_KEY, hint))
    empty = grpc.aio.Metadata()
    error = grpc.aio.AioRpcError(grpc.StatusCode.UNKNOWN, empty, trailing, details)
    assert isinstance(from_rpc(error, "one"), JupiterError)


@examples(300)
@given(odd_text, odd_text)
def test_whatever_is_logged_stays_short_and_steers_no_terminal(event: str, value: str) -> None:
    told = logging.makeLogRecord({"msg": "%s", "args": (event,), "reason": value * 50})
    line = KeyValueFormatter().format(told)
    assert line.isprintable()
    assert len(line) < 8 * MAX_CHARACTERS


@examples(300)
@given(odd_text)
def test_whatever_others_call_themselves_is_one_short_line(text: str) -> None:
    told = sanitized_text(text)
    assert told.isprintable()
    assert len(told) <= 64
