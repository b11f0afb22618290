"""TLS between two nodes that know each other's keys, for asyncio's streams.

Owns both ends' settings: TLS 1.3, and the accepted keys. Doesn't know what is sent. Each leaf is a
trust anchor itself; nothing relies on the root that all leaves share (see `net.identity`).
"""

import ssl
from collections.abc import Sequence

from jupiterd.ids import NodeId
from jupiterd.net.identity import Identity, node_id_of


def accepting_tls(identity: Identity, certificates: Sequence[bytes]) -> ssl.SSLContext:
    """Return the context of a listener that accepts only the holders of these leaves (PEM)."""
    return _with_keys(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), identity, certificates)


def connecting_tls(identity: Identity, certificate: bytes) -> ssl.SSLContext:
    """Return the context of a client that accepts only the holder of that leaf (PEM)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # all leaves carry the same name
    return _with_keys(context, identity, [certificate])


def holder_of(tls: ssl.SSLObject) -> NodeId:
    """Return the node at the other end of a connection after its handshake."""
    shown = tls.getpeercert(binary_form=True) or b""
    return node_id_of(ssl.DER_cert_to_PEM_cert(shown).encode())


def _with_keys(
    context: ssl.SSLContext, identity: Identity, certificates: Sequence[bytes]
) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_cert_chain(identity.certificate_path, identity.key_path)
    context.load_verify_locations(cadata=b"\n".join(certificates).decode())
    return context
