import stat
from pathlib import Path

import pytest
from blake3 import blake3
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from jupiterd.errors import RefusedError, StateDirError
from jupiterd.net.identity import LEAF_NAME, Identity, node_id_of, pairing_root_pem, verify


def test_the_same_key_and_certificate_come_back_after_a_restart(tmp_path: Path) -> None:
    first = Identity.load_or_create(tmp_path / "key.pem")
    assert Identity.load_or_create(tmp_path / "key.pem") == first


def test_a_lost_or_damaged_certificate_comes_back_the_same(tmp_path: Path) -> None:
    first = Identity.load_or_create(tmp_path / "key.pem")
    first.certificate_path.unlink()
    assert Identity.load_or_create(tmp_path / "key.pem").certificate_pem == first.certificate_pem
    first.certificate_path.write_bytes(b"half a certif")
    Identity.load_or_create(tmp_path / "key.pem")
    assert first.certificate_path.read_bytes() == first.certificate_pem


def test_the_key_file_can_be_read_by_its_owner_alone(identity: Identity) -> None:
    assert stat.S_IMODE(identity.key_path.stat().st_mode) == 0o600
    assert sorted(path.name for path in identity.key_path.parent.iterdir()) == [
        "certificate.pem",
        "key.pem",
    ]


def test_the_key_never_shows_in_a_printed_identity(identity: Identity) -> None:
    assert "PRIVATE" not in repr(identity)


def test_the_id_is_the_hash_of_the_public_key(identity: Identity) -> None:
    key = x509.load_pem_x509_certificate(identity.certificate_pem).public_key()
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert identity.node_id == blake3(der).hexdigest()[:32]
    assert node_id_of(identity.certificate_pem) == identity.node_id


def test_two_nodes_differ_in_nothing_but_key_and_serial(
    identity: Identity, other: Identity
) -> None:
    ours, theirs = (
        x509.load_pem_x509_certificate(one.certificate_pem) for one in (identity, other)
    )
    assert identity.node_id != other.node_id
    assert ours.subject == theirs.subject
    names = ours.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [LEAF_NAME]


def test_a_leaf_is_no_authority_and_a_dead_clock_locks_nobody_out(identity: Identity) -> None:
    leaf = x509.load_pem_x509_certificate(identity.certificate_pem)
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert (leaf.not_valid_before_utc.year, leaf.not_valid_after_utc.year) == (2020, 2099)


def test_everybody_derives_the_same_pairing_root(identity: Identity) -> None:
    root = x509.load_pem_x509_certificate(pairing_root_pem())
    x509.load_pem_x509_certificate(identity.certificate_pem).verify_directly_issued_by(root)
    assert blake3(pairing_root_pem()).hexdigest()[:16] == "b622a0853ef1c7c5"


def test_a_signature_holds_for_its_key_and_body_alone(identity: Identity, other: Identity) -> None:
    signature = identity.sign(b"entry")
    assert verify(identity.certificate_pem, b"entry", signature)
    assert not verify(identity.certificate_pem, b"Entry", signature)
    assert not verify(other.certificate_pem, b"entry", signature)
    assert not verify(identity.certificate_pem, b"entry", signature[:-1])
    assert not verify(b"no certificate", b"entry", signature)


def test_something_that_is_no_certificate_has_no_id() -> None:
    with pytest.raises(RefusedError, match="no certificate"):
        node_id_of(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def test_a_key_file_without_a_p256_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(b"nothing")
    with pytest.raises(StateDirError, match="no private key"):
        Identity.load_or_create(path)
    for key in (ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP384R1())):
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        with pytest.raises(StateDirError, match="isn't P-256"):
            Identity.load_or_create(path)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateDirError, match=r"key\.pem can't be used"):
        Identity.load_or_create(tmp_path / "absent" / "key.pem")
