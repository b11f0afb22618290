"""Mutual TLS between nodes: which keys a node accepts, and which key the other end holds.

Owns gRPC's credentials, the caller's id, and the look at an unknown peer's certificate. Doesn't
know who is a member. Both ends speak TLS 1.3: gRPC for Python has no setting for it and negotiates
the highest version that both ends know.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import grpc
import grpc.aio

from jupiterd.errors import Bug, ConnectionRefusedByPeerError, PeerUnreachableError
from jupiterd.ids import NodeId
from jupiterd.net.identity import LEAF_NAME, Identity, node_id_of, pairing_root_pem
from jupiterd.ports import Address

TARGET_NAME_OPTION: Final = ("grpc.ssl_target_name_override", LEAF_NAME)
"""A channel option: the certificate's name is the same at every address of every node."""

MAX_RECORD_BYTES: Final = 16 << 10
"""The TLS protocol version 1.3."""


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Return server credentials that accept every key and verify that the client holds it."""
    return grpc.ssl_server_credentials(
        [(identity.key_pem, identity.certificate_pem)],
        root_certificates=pairing_root_pem(),
        require_client_auth=True,
    )


def members_credentials(
    identity: Identity, certificates: Callable[[], frozenset[bytes]]
) -> grpc.ServerCredentials:
    """Return server credentials that only accept the holders of these leaf certificates.

    Each leaf is a trust anchor by itself; the common root proves nothing. gRPC calls `certificates`
    at each handshake, from a thread of its own; it must return the leaves (PEM) of the current
    members.
    """
    own = frozenset([identity.certificate_pem])
    served = own | certificates()

    def trusting(leaves: frozenset[bytes]) -> grpc.ServerCertificateConfiguration:
        pair = (identity.key_pem, identity.certificate_pem)
        return grpc.ssl_server_certificate_configuration([pair], b"\n".join(sorted(leaves)))

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal served
        leaves = own | certificates()
        if leaves == served:
            return None
        served = leaves
        return trusting(leaves)

    return grpc.dynamic_ssl_server_credentials(
        # gRPC takes None for no change, which its stubs don't say.
        trusting(served),
        cast("Any", renewed),
        require_client_authentication=True,
    )


def channel_credentials(identity: Identity, peer_certificate_pem: bytes) -> grpc.ChannelCredentials:
    """Return client credentials that accept exactly one peer: the holder of that leaf's key.

    The leaf itself is the only trust anchor. It is no certificate authority, so no other
    certificate can chain up to it.
    """
    return grpc.ssl_channel_credentials(
        root_certificates=peer_certificate_pem,
        private_key=identity.key_pem,
        certificate_chain=identity.certificate_pem,
    )


def caller(context: "grpc.aio.ServicerContext[Any, Any]") -> NodeId:
    """Return the id of the calling node, derived from the key that it proved to hold."""
    chain = context.auth_context().get("x509_pem_cert")
    if not chain:
        raise Bug("a call came in without a client certificate")
    return node_id_of(next(iter(chain)))


async def peek_certificate(
    address: Address, timeout_s: float, on_connected: Callable[[], None] = lambda: None
) -> bytes:
    """Connect to an unknown peer and return the leaf certificate that it shows (PEM).

    The result only says which key to pin; the pinned connection later proves that the peer holds
    it. This function hangs up before it would have to show this node's own certificate.

    Args:
        address: where to connect.
        timeout_s: for the whole handshake.
        on_connected: called as soon as TCP has connected.

    Raises:
        ConnectionRefusedByPeerError: the machine answers, but no daemon listens on that port.
        PeerUnreachableError: nobody answers in time, or not with TLS.
    """
    try:
        async with asyncio.timeout(timeout_s):
            shown = await _shown_certificate(address, on_connected)
    except ConnectionRefusedError as error:
        raise ConnectionRefusedByPeerError(f"nothing listens on {address}") from error
    except TimeoutError as error:
        raise PeerUnreachableError(f"{address} didn't answer in {timeout_s:g} s") from error
    except (OSError, ValueError, OverflowError) as error:
        raise PeerUnreachableError(f"{address} can't be reached: {error}") from error
    if not shown:
        raise PeerUnreachableError(f"{address} showed no certificate")
    return ssl.DER_cert_to_PEM_cert(shown).encode()


async def _shown_certificate(address: Address, on_connected: Callable[[], None]) -> bytes | None:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    on_connected()
    try:
        return (await _shake_hands(reader, writer)).getpeercert(binary_form=True)
    finally:
        writer.transport.abort()


async def _shake_hands(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ssl.SSLObject:
    """Run the peer's half of the TLS handshake; asyncio's own TLS would take 256 KiB for each."""
    heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = _looking_only().wrap_bio(heard, said, server_hostname=LEAF_NAME)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(said.read())
        else:
            return tls
        if more := await reader.read(MAX_RECORD_BYTES):
            heard.write(more)
        else:
            heard.write_eof()


@cache
def _looking_only() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    return context
