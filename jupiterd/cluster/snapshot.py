"""A ledger in short: the facts in force, and how far each writer's entries are in them.

Owns the form of a snapshot and what makes its bytes well-formed. Doesn't check signatures, and
knows neither keys nor disks. Whoever takes one takes its author's word for what others wrote: it is
for newcomers, and for members that were away for longer than entries are held one by one.

Body: msgpack [form, cluster, author, [[writer, index, term, hash]], [[type, version, [field]]],
[[term, writer number, index, type number, [value]]]]. Wire form: msgpack [body, signature]. Names
are told once, for there may be a hundred thousand facts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgpack

from jupiterd.cluster.chain import Tip
from jupiterd.cluster.entry import MAX_SIGNATURE_BYTES, Writer
from jupiterd.cluster.facts import Fact, UnknownFact, Values, reader, to_wire
from jupiterd.cluster.field_types import has_declared_types
from jupiterd.cluster.registers import Order
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId, NodeId

FORM = 1
"""Raised when the form changes; a node that can't read it says so."""

MAX_SNAPSHOT_BYTES = 128 << 20
"""About half a million facts."""

Placed = tuple[Order, Fact]

_Kind = tuple[str, int, tuple[str, ...]]
_Row = tuple[int, int, int, int, Values]


@dataclass(frozen=True)
class Snapshot:
    """What one member summed up."""

    cluster: ClusterId
    author: NodeId
    tips: Mapping[str, Tip]
    """Writer, as `node/ledger`, -> its last entry that is summed up."""
    facts: Sequence[Placed]
    body: bytes
    signature: bytes


def compose_snapshot(
    cluster: ClusterId, author: NodeId, tips: Mapping[str, Tip], facts: Iterable[Placed]
) -> bytes:
    """Return the body that the author signs."""
    numbers = {writer: number for number, writer in enumerate(tips)}
    rows = [[writer, tip.index, tip.term, tip.hash] for writer, tip in tips.items()]
    kinds: dict[_Kind, int] = {}
    told: list[object] = []
    for (term, node, ledger, index), fact in facts:
        name, version, body = to_wire(fact)
        kind = kinds.setdefault((name, version, tuple(body)), len(kinds))
        told.append((term, numbers[f"{node}/{ledger}"], index, kind, tuple(body.values())))
    return _pack([FORM, cluster, author, rows, list(kinds), told])


def seal_snapshot(body: bytes, signature: bytes) -> bytes:
    """Return the wire form of a signed snapshot."""
    return _pack([body, signature])


def parse_snapshot(raw: bytes) -> Snapshot:
    """Rebuild a snapshot from its wire form; the signature is kept, not checked.

    Raises:
        CorruptLedgerError: the bytes aren't a well-formed snapshot.
    """
    if len(raw) > MAX_SNAPSHOT_BYTES:
        raise CorruptLedgerError("a ledger snapshot is too large")
    match _unpack(raw):
        case (bytes() as body, bytes() as signature) if 0 < len(signature) <= MAX_SIGNATURE_BYTES:
            return _parse_body(body, signature)
        case _:
            raise CorruptLedgerError("a ledger snapshot isn't a body and a signature")


def _parse_body(body: bytes, signature: bytes) -> Snapshot:
    match _unpack(body):
        case (int() as form, *_) if form != FORM:
            raise CorruptLedgerError(
                f"a ledger snapshot of form {form}, and this node reads form {FORM}",
                "install the same version of Jupiter on all nodes",
            )
        case (_, str() as cluster, str() as author, tuple() as rows, tuple() as kinds,
              tuple() as told):  # fmt: skip
            writers = [_parse_tip(row) for row in rows]
            makers = [_maker(kind) for kind in kinds]
            return Snapshot(
                cluster=ClusterId(cluster),
                author=NodeId(author),
                tips={str(writer): tip for writer, tip in writers},
                facts=list(_parse_facts(told, [writer for writer, _ in writers], makers)),
                body=body,
                signature=signature,
            )
        case _:
            raise CorruptLedgerError("a ledger snapshot hasn't the parts it should have")


def _parse_tip(row: object) -> tuple[Writer, Tip]:
    match row:
        case (str() as writer, int() as index, int() as term, str() as digest) if index > 0:
            return Writer.parse(writer), Tip(index, term, digest)
        case _:
            raise CorruptLedgerError("a ledger snapshot names a writer that can't be one")


def _maker(kind: object) -> Callable[[Values], Fact]:
    match kind:
        case (str() as name, int() as version, tuple() as names) if set(map(type, names)) <= {str}:
            return reader(name, version, cast("tuple[str, ...]", names))
        case _:
            raise CorruptLedgerError("a ledger snapshot holds a kind of fact that can't be one")


def _parse_facts(
    told: Sequence[object], writers: Sequence[Writer], makers: Sequence[Callable[[Values], Fact]]
) -> Iterator[Placed]:
    places = [(writer.node, writer.ledger) for writer in writers]
    for row in told:
        try:
            term, writer, index, kind, values = cast("_Row", row)
            fact = makers[kind](values)
            node, ledger = places[writer]
        except (ValueError, TypeError, IndexError) as error:
            raise CorruptLedgerError("a ledger snapshot holds something that is no fact") from error
        if type(term) is not int or type(index) is not int or not _is_well_formed(fact):
            raise CorruptLedgerError("a ledger snapshot holds a fact that can't be one")
        yield (term, node, ledger, index), fact


def _is_well_formed(fact: Fact) -> bool:
    return isinstance(fact, UnknownFact) or has_declared_types(fact)


def _pack(value: object) -> bytes:
    packed = msgpack.packb(value, use_bin_type=True)
    assert packed is not None  # noqa: S101 - only a packer that buffers returns nothing
    return packed


def _unpack(data: bytes) -> object:
    try:
        return msgpack.unpackb(data, raw=False, strict_map_key=True, use_list=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptLedgerError("a ledger snapshot isn't msgpack") from error
