"""A ledger in short: the facts in force, and how far each writer's entries are in them.

Owns the form of a snapshot and what makes its bytes well-formed. Doesn't check signatures, and
knows neither keys nor disks. Whoever takes one takes its author's word for what others wrote: it is
for newcomers, and for members that were away for longer than entries are held one by one.

Body: msgpack [form, cluster, author, [[writer, index, term, hash]], [[type, version, [field]]],
[[term, writer number, index, type number, [value]]]]. Wire form: msgpack [body, signature]. Names
are told once, for there may be a hundred thousand facts.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import msgpack

from jupiterd.cluster.facts.fact_wire import Values, reader, to_wire
from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.facts.field_types import is_well_formed
from jupiterd.cluster.ledger.chain import Tip
from jupiterd.cluster.ledger.entry import HASH, MAX_SIGNATURE_BYTES, EntryWriter
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.cluster.values.bounds import MAX_NUMBER, MAX_WIDE, is_count
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId, NodeId

FORM = 1
"""Raised when the form changes; a node that can't read it says so."""

MAX_SNAPSHOT_BYTES = 128 << 20
MAX_FACTS = 1_000_000
MAX_FIELD_ITEMS = 4096

_PARTS = 6

Placed = tuple[Order, Fact]

_Kind = tuple[str, int, tuple[str, ...]]
_Row = tuple[int, int, int, int, Values]


@dataclass(frozen=True)
class LedgerSnapshot:
    """What one member summed up."""

    cluster: ClusterId
    author: NodeId
    tips: Mapping[str, Tip]
    """Writer, as `node/ledger`, -> its last entry that is summed up."""
    facts: Sequence[Placed]
    body: bytes
    signature: bytes

    @property
    def terms(self) -> frozenset[int]:
        """The terms of all entries that it names."""
        tips = {tip.term for tip in self.tips.values()}
        return frozenset(tips | {order[0] for order, _ in self.facts})


def compose_snapshot(
    cluster: ClusterId, author: NodeId, tips: Mapping[str, Tip], facts: Iterable[Placed]
) -> bytes:
    """Return the body that the author signs."""
    numbers = {writer: number for number, writer in enumerate(tips)}
    rows = [[writer, tip.index, tip.term, tip.hash] for writer, tip in tips.items()]
    kinds: dict[_Kind, int] = {}
    records: list[object] = []
    for (term, node, ledger, index), fact in facts:
        name, version, body = to_wire(fact)
        kind = kinds.setdefault((name, version, tuple(body)), len(kinds))
        records.append((term, numbers[f"{node}/{ledger}"], index, kind, tuple(body.values())))
    return _pack([FORM, cluster, author, rows, list(kinds), records])


def seal_snapshot(body: bytes, signature: bytes) -> bytes:
    """Return the wire form of a signed snapshot."""
    return _pack([body, signature])


def parse_snapshot(raw: bytes) -> LedgerSnapshot:
    """Rebuild a snapshot from its wire form; the signature is kept, not checked.

    Raises:
        CorruptLedgerError: the bytes aren't a well-formed snapshot.
    """
    return _parse(raw, MAX_NUMBER)


def parse_damaged_snapshot(raw: bytes) -> LedgerSnapshot:
    """Rebuild one of our own whose numbers may be out of bounds, without such facts."""
    return _parse(raw, MAX_WIDE)


def _parse(raw: bytes, most: int) -> LedgerSnapshot:
    if len(raw) > MAX_SNAPSHOT_BYTES:
        raise CorruptLedgerError("a ledger snapshot is too large")
    match _unpack(raw):
        case (bytes() as body, bytes() as signature) if 0 < len(signature) <= MAX_SIGNATURE_BYTES:
            return _parse_body(body, signature, most)
        case _:
            raise CorruptLedgerError("a ledger snapshot isn't a body and a signature")


def _parse_body(body: bytes, signature: bytes, most: int) -> LedgerSnapshot:
    parts = _Reader(body)
    if parts.next_array() != _PARTS or (form := parts.next()) is None:
        raise CorruptLedgerError("a ledger snapshot hasn't the parts it should have")
    if form != FORM:
        raise CorruptLedgerError(
            f"a ledger snapshot of form {form}, and this node reads form {FORM}",
            "install the same version of Jupiter on all nodes",
        )
    cluster, author = parts.next(), parts.next()
    if not (isinstance(cluster, str) and isinstance(author, str)):
        raise CorruptLedgerError("a ledger snapshot doesn't say whose it is")
    writers = [_parse_tip(row, most) for row in parts.rows()]
    makers = [_maker(kind) for kind in parts.rows()]
    return LedgerSnapshot(
        cluster=ClusterId(cluster),
        author=NodeId(author),
        tips={str(writer): tip for writer, tip in writers},
        facts=list(_parse_facts(parts.rows(), [writer for writer, _ in writers], makers, most)),
        body=body,
        signature=signature,
    )


class _Reader:
    """Unpacks a body part by part: a hostile one costs no more memory than what it really says."""

    def __init__(self, body: bytes) -> None:
        self._unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=True,
            use_list=False,
            max_buffer_size=MAX_SNAPSHOT_BYTES,
            max_array_len=MAX_FACTS,
            max_map_len=MAX_FIELD_ITEMS,
        )
        self._unpacker.feed(body)

    def next_array(self) -> int:
        with _named():
            return self._unpacker.read_array_header()

    def next(self) -> object:
        with _named():
            return self._unpacker.unpack()

    def rows(self) -> Iterator[object]:
        with _named():
            for _ in range(self._unpacker.read_array_header()):
                yield self._unpacker.unpack()


@contextmanager
def _named() -> Generator[None, None, None]:
    try:
        yield
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptLedgerError("a ledger snapshot isn't msgpack") from error


def _parse_tip(row: object, most: int) -> tuple[EntryWriter, Tip]:
    match row:
        case (str() as writer, int() as index, int() as term, str() as digest) if (
            index and _is_number(index, most) and _is_number(term, most) and HASH.fullmatch(digest)
        ):
            return EntryWriter.parse(writer), Tip(index, term, digest)
        case _:
            raise CorruptLedgerError("a ledger snapshot names a writer that can't be one")


def _maker(kind: object) -> Callable[[Values], Fact]:
    match kind:
        case (str() as name, int() as version, tuple() as names) if set(map(type, names)) <= {
            str
        } and is_count(version):
            return reader(name, version, cast("tuple[str, ...]", names))
        case _:
            raise CorruptLedgerError("a ledger snapshot holds a kind of fact that can't be one")


def _parse_facts(
    records: Iterable[object],
    writers: Sequence[EntryWriter],
    makers: Sequence[Callable[[Values], Fact]],
    most: int,
) -> Iterator[Placed]:
    places = [(writer.node, writer.ledger) for writer in writers]
    for row in records:
        try:
            term, writer, index, kind, values = cast("_Row", row)
            fact = makers[kind](values)
            node, ledger = places[writer]
        except (ValueError, TypeError, IndexError) as error:
            raise CorruptLedgerError("a ledger snapshot holds something that is no fact") from error
        if _is_number(term, most) and _is_number(index, most) and is_well_formed(fact):
            yield (term, node, ledger, index), fact
        elif most == MAX_NUMBER:
            raise CorruptLedgerError("a ledger snapshot holds a fact that can't be one")


def _is_number(value: object, most: int) -> bool:
    """Say whether it may be a term or an index."""
    return type(value) is int and 0 <= value <= most


def _pack(value: object) -> bytes:
    packed = msgpack.packb(value, use_bin_type=True)
    assert packed is not None  # noqa: S101 - only a packer that buffers returns nothing
    return packed


def _unpack(data: bytes) -> object:
    try:
        return msgpack.unpackb(data, raw=False, strict_map_key=True, use_list=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptLedgerError("a ledger snapshot isn't msgpack") from error
