"""One signed entry of the ledger, and its bytes.

Owns the form of an entry and what makes bytes well-formed. Doesn't check signatures, and knows
neither keys nor state.

Body: msgpack [cluster, term, node, ledger uuid, index, previous hash, [[type, version, fields]]].
Wire form: msgpack [body, signature]. The hash is BLAKE3 of the body.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import msgpack
from blake3 import blake3

from jupiterd.cluster.facts.fact_wire import from_wire, to_wire
from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.facts.field_types import is_well_formed
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.cluster.values.bounds import MAX_NUMBER, is_bounded, is_count
from jupiterd.errors import Bug, CorruptLedgerError, RefusedError
from jupiterd.ids import ClusterId, NodeId

MAX_ENTRY_BYTES = 256 * 1024
"""No entry is larger on the wire; the largest carry a domain's YAML."""

MAX_SIGNATURE_BYTES = 256
"""A P-256 signature has about 72."""

_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class EntryWriter:
    """One start of one node's daemon: the ledger uuid is drawn anew each time."""

    node: NodeId
    ledger: str

    def __str__(self) -> str:
        return f"{self.node}/{self.ledger}"

    @classmethod
    def parse(cls, text: str) -> "EntryWriter":
        """Rebuild a writer from `node/ledger`.

        Raises:
            CorruptLedgerError: the text isn't of that form.
        """
        node, slash, ledger = text.partition("/")
        if not (slash and _NAME.fullmatch(node) and _NAME.fullmatch(ledger)):
            raise CorruptLedgerError("a writer isn't named node/ledger")
        return cls(NodeId(node), ledger)


@dataclass(frozen=True)
class Entry:
    """Facts that one writer recorded together; immutable."""

    cluster: ClusterId
    term: int
    writer: EntryWriter
    index: int
    """Counts the writer's entries from 1."""
    previous: str
    """Hash of the same writer's entry before, or empty for its first."""
    facts: tuple[Fact, ...]
    hash: str
    """BLAKE3 of the body, 64 hex digits."""
    body: bytes
    signature: bytes
    raw: bytes
    """The wire form, as it is stored and relayed."""

    @cached_property
    def order(self) -> Order:
        """Where it stands among all entries of the cluster."""
        return self.term, self.writer.node, self.writer.ledger, self.index


def compose(
    cluster: ClusterId,
    term: int,
    writer: EntryWriter,
    index: int,
    previous: str,
    facts: Sequence[Fact],
) -> bytes:
    """Return the body that the author signs.

    Raises:
        RefusedError: the facts are too large for one entry, or a number in them is.
        Bug: there are no facts, or they can't be read back.
    """
    wire_facts = [to_wire(fact) for fact in facts]
    if not is_bounded([term, wire_facts]):
        raise RefusedError(
            "a number is too large for the ledger", f"whole numbers go up to {MAX_NUMBER}"
        )
    body = _pack([cluster, term, writer.node, writer.ledger, index, previous, wire_facts])
    if len(body) > MAX_ENTRY_BYTES - MAX_SIGNATURE_BYTES - 16:
        raise RefusedError(
            f"{len(body)} bytes are too many for one ledger entry",
            "make the domain file shorter: an entry holds 256 KiB",
        )
    try:
        parse(seal(body, b"unsigned"))
    except CorruptLedgerError as error:
        raise Bug(f"a ledger entry nobody could read: {error.message}") from error
    return body


def seal(body: bytes, signature: bytes) -> bytes:
    """Return the wire form of a signed entry."""
    return _pack([body, signature])


def parse(raw: bytes) -> Entry:
    """Rebuild an entry from its wire form; the signature is kept, not checked.

    Raises:
        CorruptLedgerError: the bytes aren't exactly one well-formed entry.
    """
    if len(raw) > MAX_ENTRY_BYTES:
        raise _refusal("is too large")
    match _unpack(raw):
        case [bytes() as body, bytes() as signature] if 0 < len(signature) <= MAX_SIGNATURE_BYTES:
            return _parse_body(raw, body, signature)
        case _:
            raise _refusal("isn't a body and a signature")


def _parse_body(raw: bytes, body: bytes, signature: bytes) -> Entry:
    match _unpack(body):
        case [
            str() as cluster,
            int() as term,
            str() as node,
            str() as ledger,
            int() as index,
            str() as previous,
            list() as facts,
        ] if _NAME.fullmatch(cluster):
            _check_position(term, index, previous)
            return Entry(
                cluster=ClusterId(cluster),
                term=term,
                writer=EntryWriter.parse(f"{node}/{ledger}"),
                index=index,
                previous=previous,
                facts=_parse_facts(facts),
                hash=blake3(body).hexdigest(),
                body=body,
                signature=signature,
                raw=raw,
            )
        case _:
            raise _refusal("hasn't the fields it should have")


def _check_position(term: int, index: int, previous: str) -> None:
    if isinstance(term, bool) or isinstance(index, bool):
        raise _refusal("has a truth value for a number")
    if not (0 <= term <= MAX_NUMBER and 1 <= index <= MAX_NUMBER):
        raise _refusal("has a number out of bounds")
    if (index == 1) != (previous == "") or (previous and not HASH.fullmatch(previous)):
        raise _refusal("doesn't name the entry before it")


def _parse_facts(items: list[Any]) -> tuple[Fact, ...]:
    if not items:
        raise _refusal("holds no facts")
    return tuple(_parse_fact(item) for item in items)


def _parse_fact(item: object) -> Fact:
    match item:
        case [str() as type_name, int() as version, dict() as body] if not isinstance(
            version, bool
        ) and is_count(version):
            fact = from_wire(type_name, version, body)
            if not is_well_formed(fact):
                raise _refusal(f"holds a {type_name} whose fields have the wrong types")
            return fact
        case _:
            raise _refusal("holds something that is no fact")


def _pack(value: object) -> bytes:
    packed = msgpack.packb(value, use_bin_type=True)
    assert packed is not None  # noqa: S101 - only a packer that buffers returns nothing
    return packed


def _no_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError(f"extension {code} of {len(data)} bytes")


def _unpack(data: bytes) -> object:
    """Read exactly one value in the encoding we write: no extensions, doubled keys or tail."""
    try:
        value = msgpack.unpackb(data, raw=False, strict_map_key=True, ext_hook=_no_extension)
        is_exact = _pack(value) == data
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        raise CorruptLedgerError("a ledger entry isn't msgpack") from error
    if not is_exact:
        raise _refusal("isn't encoded as it should be")
    return value


def _refusal(why: str) -> CorruptLedgerError:
    return CorruptLedgerError(f"a ledger entry {why}")
