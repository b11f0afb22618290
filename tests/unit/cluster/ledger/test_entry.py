from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.fact_wire import to_wire
from jupiterd.cluster.facts.facts import UnknownFact
from jupiterd.cluster.ledger.entry import MAX_ENTRY_BYTES, EntryWriter, compose, parse, seal
from jupiterd.errors import Bug, CorruptLedgerError, RefusedError
from jupiterd.ids import NodeId
from tests.support.cluster.building import (
    CLUSTER,
    NODES,
    SIGNATURE,
    checkpoint,
    sample_facts,
    started,
)

WRITER = EntryWriter(NODES[0], "0f" * 8)
BODY = compose(CLUSTER, 3, WRITER, 2, "9" * 64, sample_facts())
RAW = seal(BODY, SIGNATURE)


def packed(value: object) -> bytes:
    data = msgpack.packb(value, use_bin_type=True)
    assert data is not None
    return data


def raw_with(position: int, value: object) -> bytes:
    """A well-formed entry but for one field of its body."""
    fields: list[Any] = [CLUSTER, 1, WRITER.node, WRITER.ledger, 1, "", [to_wire(started())]]
    fields[position] = value
    return seal(packed(fields), SIGNATURE)


def test_an_entry_comes_back_as_it_was_composed() -> None:
    entry = parse(RAW)
    assert (entry.cluster, entry.term, entry.writer) == (CLUSTER, 3, WRITER)
    assert (entry.index, entry.previous) == (2, "9" * 64)
    assert entry.facts == tuple(sample_facts())
    assert (entry.body, entry.signature, entry.raw) == (BODY, SIGNATURE, RAW)
    assert entry.order == (3, NODES[0], "0f" * 8, 2)


def test_the_hash_covers_the_body_and_not_the_signature() -> None:
    other = parse(seal(BODY, b"another"))
    assert other.hash == parse(RAW).hash
    assert parse(raw_with(1, 2)).hash != parse(raw_with(1, 3)).hash


def test_a_writer_is_named_by_node_and_ledger() -> None:
    assert str(WRITER) == f"{NODES[0]}/{'0f' * 8}"
    assert EntryWriter.parse(str(WRITER)) == WRITER


@pytest.mark.parametrize("text", ["", "a", "a/", "/b", "a/b/c", "a b/c", "a/" + "b" * 65, "ä/b"])
def test_a_writer_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CorruptLedgerError):
        EntryWriter.parse(text)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_arbitrary_bytes_are_no_entry(data: bytes) -> None:
    with pytest.raises(CorruptLedgerError):
        parse(data)


@given(st.integers(0, len(RAW) - 1), st.integers(1, 255))
@settings(max_examples=500, deadline=None)
def test_a_flipped_byte_is_refused_or_shows_in_hash_or_signature(position: int, flip: int) -> None:
    data = bytearray(RAW)
    data[position] ^= flip
    try:
        entry = parse(bytes(data))
    except CorruptLedgerError:
        return
    assert entry.raw == bytes(data)
    assert entry.body != BODY or entry.signature != SIGNATURE
    assert (entry.hash == parse(RAW).hash) == (entry.body == BODY)


@given(st.integers(0, len(RAW) - 1))
@settings(deadline=None)
def test_a_torn_entry_is_refused(size: int) -> None:
    with pytest.raises(CorruptLedgerError):
        parse(RAW[:size])


@pytest.mark.parametrize(
    "raw",
    [
        RAW + b"\x00",
        packed([BODY]),
        packed([BODY, b""]),
        packed([BODY, b"s" * 257]),
        packed([BODY, "text"]),
        packed([BODY, SIGNATURE, 1]),
        packed({"body": BODY}),
        b"\x92\xc5" + len(BODY).to_bytes(2, "big") + BODY + b"\xc5\x00\x01s",  # too long a form
        packed([packed([CLUSTER, 1]), SIGNATURE]),
        packed([b"\xc1", SIGNATURE]),
        b"\x00" * (MAX_ENTRY_BYTES + 1),
    ],
)
def test_a_wrong_envelope_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptLedgerError):
        parse(raw)


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, ""),
        (0, "c" * 65),
        (0, 7),
        (1, -1),
        (1, 2**63),
        (1, 1.0),
        (1, True),
        (2, "a/b"),
        (3, ""),
        (4, 0),
        (4, True),
        (4, 2),  # without a hash of the entry before
        (5, "9" * 64),  # the first has none before it
        (6, []),
        (6, {}),
        (6, ["CycleStarted"]),
        (6, [[1, 1, {}]]),
        (6, [["CycleStarted", True, {}]]),
        (6, [["CycleStarted", 1, []]]),
        (6, [["Other", 1, {1: 2}]]),
        (6, [["Other", 1, {"x": msgpack.ExtType(4, b"")}]]),
        (6, [["Other", 1, {"x": msgpack.ExtType(4, b"12345")}]]),
    ],
)
def test_a_wrong_field_is_refused(position: int, value: object) -> None:
    with pytest.raises(CorruptLedgerError):
        parse(raw_with(position, value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("round", "1"),
        ("round", True),
        ("round", 1.5),
        ("loss", "3"),
        ("loss", True),
        ("is_final", 1),
        ("artifact", b"k1"),
        ("parent", None),
        ("parent", ["x"]),
    ],
)
def test_a_known_fact_with_a_field_of_the_wrong_type_is_refused(field: str, value: object) -> None:
    kind, version, body = to_wire(checkpoint("k1"))
    with pytest.raises(CorruptLedgerError):
        parse(raw_with(6, [[kind, version, body | {field: value}]]))


@pytest.mark.parametrize("counts", [{"kept": "3"}, {"kept": True}, {b"kept": 3.0}, [["kept", 3.0]]])
def test_the_values_inside_a_fact_are_checked_too(counts: object) -> None:
    kind, version, body = to_wire(
        next(fact for fact in sample_facts() if to_wire(fact)[0] == "WorkCompleted")
    )
    with pytest.raises(CorruptLedgerError):
        parse(raw_with(6, [[kind, version, body | {"counts": counts}]]))


def test_a_fact_of_a_newer_version_is_kept_as_it_came() -> None:
    kind, _, body = to_wire(started())
    newer = [kind, 2, body | {"colour": "red"}]
    (fact,) = parse(raw_with(6, [newer])).facts
    assert fact == UnknownFact(kind, 2, body | {"colour": "red"})


def test_a_domain_too_large_for_an_entry_is_the_users_to_mend() -> None:
    fact = UnknownFact("Long", 1, {"text": "x" * MAX_ENTRY_BYTES})
    with pytest.raises(RefusedError) as caught:
        compose(CLUSTER, 1, WRITER, 1, "", [fact])
    assert "domain" in caught.value.hint


def test_an_entry_of_200_kib_is_fine() -> None:
    fact = UnknownFact("Long", 1, {"text": "x" * 200 * 1024})
    assert parse(seal(compose(CLUSTER, 1, WRITER, 1, "", [fact]), SIGNATURE)).facts == (fact,)


@pytest.mark.parametrize(("index", "previous"), [(0, ""), (2, ""), (1, "9" * 64)])
def test_composing_what_nobody_could_read_is_our_own_bug(index: int, previous: str) -> None:
    with pytest.raises(Bug):
        compose(CLUSTER, 1, WRITER, index, previous, [started()])


def test_composing_without_facts_is_our_own_bug() -> None:
    with pytest.raises(Bug):
        compose(CLUSTER, 1, EntryWriter(NodeId("a"), "u"), 1, "", [])


@pytest.mark.parametrize(
    "body", [{"a": {b"b": 2}}, {"a": [[[[[[[[[1]]]]]]]]]}, {"a": {"b": {7: 1}}}]
)
def test_an_unknown_fact_that_not_every_node_could_hold_is_refused(body: dict[str, object]) -> None:
    writer = EntryWriter(NODES[0], "u")
    with pytest.raises((Bug, CorruptLedgerError)):
        compose(CLUSTER, 1, writer, 1, "", [UnknownFact("New", 1, body)])
