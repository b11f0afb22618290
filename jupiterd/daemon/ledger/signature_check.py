"""The border of a ledger: nothing gets in that a member hasn't signed.

Owns the check of signatures against the roster. Doesn't know where entries come from or where they
are stored.
"""

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.ledger.ledger import Entry, Ledger
from jupiterd.cluster.ledger.snapshot import LedgerSnapshot, parse_snapshot
from jupiterd.errors import CorruptLedgerError
from jupiterd.gc_pause import collector_paused
from jupiterd.ids import NodeId, short
from jupiterd.net.identity import node_id_of, verify


def add_verified(ledger: Ledger, entry: Entry) -> bool:
    """Add an entry if its author signed it; say whether it is new.

    Raises:
        CorruptLedgerError: no member signed it, or it doesn't fit.
    """
    check_signed(ledger, entry)
    return ledger.add(entry)


def check_signed(ledger: Ledger, entry: Entry) -> None:
    """Raise CorruptLedgerError unless a member, or a former one, signed an entry as its author."""
    certificate = ledger.certificate_of(entry)
    if not _is_signed(certificate, entry.writer.node, entry.body, entry.signature):
        raise CorruptLedgerError(f"entry {entry.hash[:8]} isn't signed by a member")


def witness_verified(ledger: Ledger, entry: Entry) -> bool:
    """Take in whom an entry admits and removes if its author signed it; say whether it is new.

    Raises:
        CorruptLedgerError: no member signed it, or it doesn't fit.
    """
    check_signed(ledger, entry)
    return ledger.witness(entry)


def verified_snapshot(ledger: Ledger, raw: bytes, author: NodeId | None = None) -> LedgerSnapshot:
    """Return a snapshot that may be adopted: its author signed it, and it fits the ledger.

    Raises:
        CorruptLedgerError: no member signed it, one other than `author` did, or it doesn't fit.
    """
    with collector_paused():
        snapshot = parse_snapshot(raw)
    if author not in (None, snapshot.author):
        raise CorruptLedgerError(f"a ledger snapshot is of another node, {short(snapshot.author)}")
    certificate = _certificate_of(ledger, snapshot)
    if not _is_signed(certificate, snapshot.author, snapshot.body, snapshot.signature):
        raise CorruptLedgerError("a ledger snapshot isn't signed by a member")
    ledger.check(snapshot)
    return snapshot


def adopt(ledger: Ledger, snapshot: LedgerSnapshot) -> None:
    """Take in a verified snapshot."""
    with collector_paused():
        ledger.adopt(snapshot)


def _certificate_of(ledger: Ledger, snapshot: LedgerSnapshot) -> bytes | None:
    """Return its author's certificate; a ledger that holds nothing takes it from the snapshot."""
    known = ledger.state.members.get(snapshot.author)
    if known is not None or len(ledger):
        return known.certificate_pem if known is not None else None
    facts = (fact for _, fact in snapshot.facts if isinstance(fact, NodeAdmitted))
    return next((fact.certificate_pem for fact in facts if fact.node == snapshot.author), None)


def _is_signed(certificate: bytes | None, node: NodeId, body: bytes, signature: bytes) -> bool:
    return (
        certificate is not None
        and node_id_of(certificate) == node
        and verify(certificate, body, signature)
    )
