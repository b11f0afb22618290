"""Signatures that cost nothing: a hash in place of a key.

Owns who can sign as whom, and the border of a simulated ledger, as `daemon.signature_check` does
with real keys.
"""

from functools import lru_cache

from blake3 import blake3

from jupiterd.cluster.ledger.ledger import Entry, Ledger
from jupiterd.cluster.ledger.snapshot import LedgerSnapshot, parse_snapshot
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import NodeId


@lru_cache(maxsize=4096)
def sign(node: NodeId, body: bytes) -> bytes:
    """Return what only this node can make of these bytes."""
    return blake3(node.encode() + body).digest()


def certificate_of(node: NodeId) -> bytes:
    """Return what says that a key is this node's."""
    return b"certificate of " + node.encode()


def add_verified(ledger: Ledger, entry: Entry) -> bool:
    """Add an entry if its author signed it; say whether it is new."""
    check_signed(ledger, entry)
    return ledger.add(entry)


def check_signed(ledger: Ledger, entry: Entry) -> None:
    """Refuse an entry that its author hasn't signed."""
    node = entry.writer.node
    if ledger.certificate_of(entry) != certificate_of(node) or entry.signature != sign(
        node, entry.body
    ):
        raise CorruptLedgerError(f"entry {entry.hash[:8]} isn't signed by a member")


def verified_snapshot(ledger: Ledger, raw: bytes) -> LedgerSnapshot:
    """Return a snapshot that a member signed and that fits."""
    snapshot = parse_snapshot(raw)
    is_member = not len(ledger) or snapshot.author in ledger.state.members
    if not is_member or snapshot.signature != sign(snapshot.author, snapshot.body):
        raise CorruptLedgerError("a ledger snapshot isn't signed by a member")
    ledger.check(snapshot)
    return snapshot
