"""A node's key pair, the certificate that shows its public key, and its signatures.

Owns the key file and the format of every certificate. Doesn't know who is a member, or any socket.

**A certificate here states one public key and nothing else.** No node knows a newcomer's key, yet
the TLS handshake must succeed: only then can a node read the key and decide about it. gRPC's Python
servers offer "require and verify" only, so they need a root to verify against: the *pairing root*,
a certificate authority whose private key is derived from a public constant. Anybody can sign with
it, so its signature proves nothing, and no code relies on it. TLS does prove that the peer holds
the private key of the leaf that it shows. Therefore

1. a node computes a peer's id as the hash of the leaf's public key, at every call; it never reads a
   name in the certificate;
2. a client trusts exactly the one leaf that it expects (`credentials`), never the pairing root.

A leaf is a pure function of its key (deterministic signature, serial number from the key), so a
node that lost its certificate file writes the same one again, and clients that pinned it still
accept it.
"""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from blake3 import blake3
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from jupiterd.errors import BadCertificateError, StateDirError
from jupiterd.ids import NodeId

LEAF_NAME: Final = "node.jupiter.internal"
"""The subject and DNS name of every leaf; all nodes share it, so that no code can take it for an
identity."""

CERTIFICATE_FILE: Final = "certificate.pem"

_ROOT_NAME = "jupiter pairing root"
_ROOT_SEED = b"jupiter pairing root v1"
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_VALID_FROM = datetime(2020, 1, 1, tzinfo=UTC)
_VALID_TO = datetime(2099, 12, 31, tzinfo=UTC)
"""The range is wide, so that a machine with a wrong clock can still connect."""

_SIGNATURE = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True)
class Identity:
    """This node's key pair and the leaf certificate that shows it."""

    node_id: NodeId
    key_pem: bytes = field(repr=False)
    certificate_pem: bytes = field(repr=False)
    key_path: Path
    certificate_path: Path

    @classmethod
    def load_or_create(cls, key_path: Path) -> "Identity":
        """Read the key, or create one; write its certificate beside it.

        Raises:
            StateDirError: the file can't be read or written, or holds no P-256 key.
        """
        certificate_path = key_path.with_name(CERTIFICATE_FILE)
        try:
            if not key_path.exists():
                _write(key_path, _new_key_pem(), mode=0o600)
            key_pem = key_path.read_bytes()
            key = _read_key(key_pem, key_path)
            certificate_pem = _leaf_pem(key.public_key())
            if not certificate_path.exists() or certificate_path.read_bytes() != certificate_pem:
                _write(certificate_path, certificate_pem, mode=0o644)
        except OSError as error:
            raise StateDirError(f"{key_path} can't be used: {error.strerror}") from error
        node_id = _hash_key(key.public_key())
        return cls(node_id, key_pem, certificate_pem, key_path, certificate_path)

    def sign(self, body: bytes) -> bytes:
        """Return a DER-encoded ECDSA signature (SHA-256) of `body`."""
        return _read_key(self.key_pem, self.key_path).sign(body, _SIGNATURE)


@lru_cache(maxsize=1024)
def node_id_of(certificate_pem: bytes) -> NodeId:
    """Return the id of the node whose public key the certificate shows.

    Raises:
        BadCertificateError: the bytes are no certificate of a P-256 key.
    """
    return _hash_key(_public_key(certificate_pem))


@lru_cache(maxsize=1024)
def leaf_of(certificate_pem: bytes, node: NodeId) -> bytes:
    """Return a node's certificate (PEM) without any text around it.

    Raises:
        BadCertificateError: the bytes are no certificate of that node.
    """
    if node_id_of(certificate_pem) != node:
        raise BadCertificateError("the certificate isn't that of the node")
    certificate = x509.load_pem_x509_certificate(certificate_pem)
    return certificate.public_bytes(serialization.Encoding.PEM)


def verify(certificate_pem: bytes, body: bytes, signature: bytes) -> bool:
    """Return whether the certificate's key signed `body`; False if it is no P-256 certificate."""
    try:
        _public_key(certificate_pem).verify(signature, body, _SIGNATURE)
    except (InvalidSignature, BadCertificateError):
        return False
    return True


@cache
def pairing_root_pem() -> bytes:
    """Return the certificate (PEM) of the authority that anybody can sign with."""
    usage = _key_usage(signs_certificates=True)
    builder = _builder(_ROOT_NAME, _pairing_root_key().public_key(), is_authority=True)
    return _signed(builder.add_extension(usage, critical=True))


def _leaf_pem(public_key: ec.EllipticCurvePublicKey) -> bytes:
    both_sides = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    builder = (
        _builder(LEAF_NAME, public_key, is_authority=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(LEAF_NAME)]), critical=False)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_sides), critical=False)
    )
    return _signed(builder)


def _builder(
    subject: str, public_key: ec.EllipticCurvePublicKey, *, is_authority: bool
) -> x509.CertificateBuilder:
    serial = int.from_bytes(blake3(_key_der(public_key)).digest(16), "big") >> 1
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _ROOT_NAME)]))
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(_VALID_FROM)
        .not_valid_after(_VALID_TO)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: x509.CertificateBuilder) -> bytes:
    certificate = builder.sign(_pairing_root_key(), hashes.SHA256(), ecdsa_deterministic=True)
    return certificate.public_bytes(serialization.Encoding.PEM)


@cache
def _pairing_root_key() -> ec.EllipticCurvePrivateKey:
    number = int.from_bytes(blake3(_ROOT_SEED).digest(), "big") % _P256_ORDER
    return ec.derive_private_key(number, ec.SECP256R1())


def _public_key(certificate_pem: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = x509.load_pem_x509_certificate(certificate_pem).public_key()
    except Exception as error:  # the parser's own kinds of error are many and undocumented
        raise BadCertificateError(
            "the other side showed something that is no certificate"
        ) from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadCertificateError("the other side showed a certificate whose key isn't P-256")
    return key


def _key_der(public_key: ec.EllipticCurvePublicKey) -> bytes:
    return public_key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _hash_key(public_key: ec.EllipticCurvePublicKey) -> NodeId:
    return NodeId(blake3(_key_der(public_key)).hexdigest()[:32])


def _new_key_pem() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _read_key(key_pem: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError) as error:
        raise StateDirError(f"{path} holds no private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise StateDirError(f"{path} holds a key that isn't P-256")
    return key


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file atomically; only `mode` may ever read it, from its first byte."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
