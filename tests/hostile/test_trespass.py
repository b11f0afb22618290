"""What somebody tries whose key nobody has let in, over real TLS: refused, counted, logged once."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from jupiterd.cluster.ledger.tokens import Side, Token, prove
from jupiterd.cluster.membership.call_rights import open_calls
from jupiterd.daemon.app.node import Node
from jupiterd.ids import short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity, _pairing_root_key, pairing_root_pem
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import artifact_pb2, peer_pb2, script_pb2, serving_pb2
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import TIMEOUT_S, address_of, serving, unite
from tests.unit.daemon.membership.test_joining_by_token import closed, token_of
from tests.unit.net.conftest import named_identity

pytestmark = pytest.mark.net

SERVICES = {
    "Peer": peer_pb2,
    "Artifacts": artifact_pb2,
    "Scripts": script_pb2,
    "Serving": serving_pb2,
}
METHODS = [
    f"/jupiter.v1.{service}/{method.name}"
    for service, file in SERVICES.items()
    for method in file.DESCRIPTOR.services_by_name[service].methods
    if method.name not in open_calls()
]
DECISIONS = peer_pb2.JoinReply.Decision


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Node]:
    """A node that leads a closed cluster."""
    async with serving(tmp_path, "one") as node:
        await closed(node)
        yield node


@pytest.fixture
def stranger(tmp_path: Path) -> Identity:
    return named_identity(tmp_path, "stranger")


async def call(identity: Identity, node: Node, method: str, raw: bytes = b"") -> list[bytes]:
    """Call any method with any bytes; return the replies."""
    way = PeerChannels(identity, address_of(node), node.identity.certificate_pem)
    try:
        replies: Any = way._channel(4 << 20).unary_stream(method, bytes, bytes)(
            raw, timeout=TIMEOUT_S
        )
        return [reply async for reply in replies]
    finally:
        await way.close()


async def refusal(identity: Identity, node: Node, method: str, raw: bytes = b"") -> str:
    """Return the code with which a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call(identity, node, method, raw)
    return from_rpc(error.value, "one").code


@pytest.mark.parametrize("method", METHODS)
async def test_a_stranger_is_refused_before_its_request_is_read(
    one: Node, stranger: Identity, method: str
) -> None:
    assert await refusal(stranger, one, method, b"\xff not a message") == "not-a-member"


async def test_what_is_refused_is_counted_each_time_and_logged_once(
    one: Node, stranger: Identity, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        await refusal(stranger, one, METHODS[0])
    await refusal(stranger, one, "/jupiter.v1.Peer/Hello", b"\xff")
    assert status_of(one)["refused"] == {"malformed": 1, "not-a-member": 5}
    told = [vars(record) for record in caplog.records if record.message == "refused"]
    assert [(line["kind"], line["caller"]) for line in told] == [
        ("not-a-member", short(stranger.node_id)),
        ("malformed", short(stranger.node_id)),
    ]


def signed_leaf(key: Any, name: str) -> bytes:
    """Return what everybody can make: a leaf for any key, with any name in it."""
    root = x509.load_pem_x509_certificate(pairing_root_pem())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(root.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(root.not_valid_before_utc)
        .not_valid_after(root.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    leaf = builder.sign(_pairing_root_key(), hashes.SHA256())
    return leaf.public_bytes(serialization.Encoding.PEM)


async def test_another_s_name_on_a_certificate_changes_nobody_s_id(
    one: Node, stranger: Identity
) -> None:
    key = serialization.load_pem_private_key(stranger.key_pem, None)
    leaf = signed_leaf(key, one.identity.node_id)
    for chain in (leaf, leaf + one.identity.certificate_pem):
        disguised = replace(stranger, certificate_pem=chain)
        assert await refusal(disguised, one, "/jupiter.v1.Peer/Beat") == "not-a-member"
    request = peer_pb2.JoinRequest(
        name=one.settings.name, certificate_pem=one.identity.certificate_pem
    )
    raw = request.SerializeToString()
    assert await refusal(disguised, one, "/jupiter.v1.Peer/Join", raw) == "bad-certificate"
    assert set(one.replica.state.members) == {one.identity.node_id}


async def test_a_key_of_another_kind_is_nobody_s(one: Node, stranger: Identity) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    odd = replace(stranger, key_pem=pem, certificate_pem=signed_leaf(key, "x"))
    for method in ("/jupiter.v1.Peer/Hello", "/jupiter.v1.Peer/FetchSnapshot"):
        assert await refusal(odd, one, method) == "bad-certificate"


async def join(identity: Identity, one: Node, token: Token, proof: bytes) -> int:
    """Ask to be let in with a proof; return the decision."""
    request = peer_pb2.JoinRequest(
        name="x", certificate_pem=identity.certificate_pem, token_id=token.id, proof=proof
    )
    (raw,) = await call(identity, one, "/jupiter.v1.Peer/Join", request.SerializeToString())
    return peer_pb2.JoinReply.FromString(raw).decision


async def test_a_proof_that_was_overheard_and_a_token_used_twice_let_in_nobody(
    one: Node, stranger: Identity, tmp_path: Path
) -> None:
    token, newcomer = await token_of(one), named_identity(tmp_path, "newcomer")

    def proof_of(identity: Identity) -> bytes:
        own = one.identity.node_id
        return prove(token.secret, Side.NEWCOMER, token.cluster, identity.node_id, own)

    assert await join(stranger, one, token, proof_of(newcomer)) == DECISIONS.REFUSED
    assert await join(newcomer, one, token, proof_of(newcomer)) == DECISIONS.ADMITTED
    assert await join(stranger, one, token, proof_of(newcomer)) == DECISIONS.REFUSED
    assert await join(stranger, one, token, proof_of(stranger)) == DECISIONS.REFUSED
    assert stranger.node_id not in one.replica.state.members
    assert one.refusals.to_plain() == {"bad-token": 2, "not-let-in": 3}


async def test_an_oversized_request_is_refused_and_the_node_goes_on(
    one: Node, stranger: Identity
) -> None:
    hello = "/jupiter.v1.Peer/Hello"
    large = peer_pb2.HelloRequest(name="x" * 20_000).SerializeToString()
    assert await refusal(stranger, one, hello, large) == "too-large"
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call(stranger, one, hello, bytes(3 << 20))
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(await call(stranger, one, hello)) == 1
    counts = one.refusals.to_plain()
    assert sum(counts.values()) == 2, counts


PATHS = ("../..", "../../key.pem", "/etc/passwd", "a\0b", "A" * 64, "." * 64, "", "a" * 70_000)


def files_below(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if not path.name.endswith("-shm")}


@pytest.mark.parametrize("name", PATHS)
async def test_a_path_in_place_of_an_artifact_s_name_reaches_no_file(
    tmp_path: Path, name: str
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        before = files_below(tmp_path)
        bulk = other.peers.require(one.identity.node_id).channels.bulk
        have = await bulk.Have(artifact_pb2.HaveRequest(ids=[name]), timeout=TIMEOUT_S)
        assert list(have.ids) == []
        request = artifact_pb2.ManifestRequest(id=name)
        assert (await bulk.GetManifest(request, timeout=TIMEOUT_S)).manifest == b""
        wanted = artifact_pb2.FetchRequest(id=name, ranges=[artifact_pb2.ByteRange(length=9)])
        with pytest.raises(grpc.aio.AioRpcError) as error:
            _ = [piece async for piece in bulk.Fetch(wanted, timeout=TIMEOUT_S)]
        assert from_rpc(error.value, "one").code == "not-found"
        reply = await bulk.Replicate(artifact_pb2.ReplicateRequest(id=name), timeout=TIMEOUT_S)
        assert not reply.held
        assert files_below(tmp_path) <= before


async def test_a_stranger_holds_few_calls_at_once_and_none_for_long(
    one: Node, stranger: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.net.call_guard.REQUEST_TIMEOUT_S", 0.5)
    way = PeerChannels(stranger, address_of(one), one.identity.certificate_pem)
    raw_channel: Any = way._channel(4 << 20)
    hello = raw_channel._channel.stream_unary("/jupiter.v1.Peer/Hello")
    never = asyncio.Event()

    async def silence() -> AsyncIterator[bytes]:
        await never.wait()
        yield b""

    calls = [hello(silence(), timeout=TIMEOUT_S) for _ in range(10)]
    codes = [from_rpc(error, "one").code for error in await gathered(calls)]
    assert codes.count("too-often") == 6
    assert codes.count("malformed") == 4
    never.set()
    await way.close()
    assert len(await call(stranger, one, "/jupiter.v1.Peer/Hello")) == 1


async def gathered(calls: list[Any]) -> list[grpc.aio.AioRpcError]:
    async def failed(one: Any) -> Any:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await one
        return error.value

    return list(await asyncio.gather(*map(failed, calls)))


async def test_a_fault_of_ours_is_logged_once_and_tells_the_caller_nothing(
    one: Node, stranger: Identity, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(one.handshake, "note_caller", lambda *_: 1 // 0)
    raw = peer_pb2.HelloRequest(port=9).SerializeToString()
    for _ in range(3):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(stranger, one, "/jupiter.v1.Peer/Hello", raw)
        assert error.value.code() is grpc.StatusCode.INTERNAL
        assert "division" not in str(error.value.details())
    assert one.refusals.to_plain() == {"unexpected": 3}
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert max(record.levelno for record in caplog.records) == logging.ERROR
