"""What passes the bounds of messages each of our encoders can write, and what follows it, too."""

import json
import math
import sqlite3
from collections.abc import Iterator

import msgpack
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.values.bounds import MAX_NUMBER, MAX_REAL
from jupiterd.net.message_bounds import MAYBE_UNKNOWN, _is_map, _map_value, out_of_bounds
from jupiterd.rpc import artifact_pb2, peer_pb2, script_pb2, serving_pb2
from tests.hostile.fuzzing import examples

KINDS: list[Descriptor] = [
    kind
    for file in (peer_pb2, artifact_pb2, script_pb2, serving_pb2)
    for kind in file.DESCRIPTOR.message_types_by_name.values()
]
WHOLE = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
REAL = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)

numbers = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, MAX_NUMBER, MAX_NUMBER + 1, 2**63, 2**64 - 1])
)
reals = st.one_of(
    st.floats(), st.sampled_from([MAX_REAL, -MAX_REAL, 2 * MAX_REAL, math.inf, -math.inf, math.nan])
)


def number_fields() -> Iterator[tuple[Descriptor, FieldDescriptor, int]]:
    for kind in KINDS:
        for field in kind.fields:
            held = _map_value(field) if _is_map(field) else field
            if held.cpp_type in WHOLE + REAL:
                yield kind, field, held.cpp_type


FIELDS = list(number_fields())


def message_with(kind: Descriptor, field: FieldDescriptor, value: float) -> Message:
    """Return a message that holds a value in one field, and nothing else."""
    made = GetMessageClass(kind)()
    if _is_map(field):
        key = field.message_type.fields_by_name["key"]
        getattr(made, field.name)["k" if key.cpp_type == key.CPPTYPE_STRING else 1] = value
    elif field.is_repeated:
        getattr(made, field.name).append(value)
    else:
        setattr(made, field.name, value)
    return made


def test_there_are_fields_of_each_kind() -> None:
    names = {f"{kind.name}.{field.name}" for kind, field, _ in FIELDS}
    assert {
        "Heartbeat.term",
        "WorkRequest.attempt",
        "WriterTip.index",
        "WorkPseudoGradient.tokens",
    } <= names
    assert names >= MAYBE_UNKNOWN


@pytest.mark.parametrize("place", range(len(FIELDS)))
def test_a_number_out_of_bounds_is_found_in_every_field(place: int) -> None:
    kind, field, held = FIELDS[place]
    name = f"{kind.name}.{field.name}"
    bad = (MAX_NUMBER + 1, 2**63 - 1) if held in WHOLE else (2 * MAX_REAL, -2 * MAX_REAL)
    for value in bad:
        assert out_of_bounds(message_with(kind, field, value)) == name
    good = (1, MAX_NUMBER) if held in WHOLE else (1.5, -MAX_REAL, MAX_REAL)
    for value in good:
        assert out_of_bounds(message_with(kind, field, value)) == ""
    if held in REAL:
        for value in (math.inf, -math.inf, math.nan):
            is_allowed = out_of_bounds(message_with(kind, field, value)) == ""
            assert is_allowed == (name in MAYBE_UNKNOWN)


@examples(200)
@given(st.sampled_from(FIELDS), numbers, reals)
def test_what_passes_survives_our_own_encoders(
    chosen: tuple[Descriptor, FieldDescriptor, int], number: int, real: float
) -> None:
    kind, field, held = chosen
    value = number if held in WHOLE else real
    try:
        message = message_with(kind, field, value)
    except ValueError:  # an int64 is narrower
        return
    if out_of_bounds(type(message).FromString(message.SerializeToString())):
        return
    wanted = [value, value + 1, value * 1000] if held in WHOLE else [value, value * 2]
    assert msgpack.unpackb(msgpack.packb(wanted)) == pytest.approx(wanted, nan_ok=True)
    for each in wanted:
        if held in WHOLE:
            (kept,) = sqlite3.connect(":memory:").execute("SELECT ?", (each,)).fetchone()
            assert kept == each
        if math.isfinite(each):
            assert json.loads(json.dumps(each, allow_nan=False)) == each
        message_with(kind, field, each).SerializeToString()


def test_a_number_that_lies_deep_is_found() -> None:
    event = peer_pb2.WorkEvent(pseudo_gradient=peer_pb2.WorkPseudoGradient(tokens=2**53))
    assert out_of_bounds(event) == "WorkPseudoGradient.tokens"
    reply = peer_pb2.ExchangeReply(
        have=[peer_pb2.WriterTip(index=1), peer_pb2.WriterTip(index=2**63)]
    )
    assert out_of_bounds(reply) == "WriterTip.index"
    names_are_no_counts = peer_pb2.Heartbeat(ages_ms={2**64 - 1: 7})
    assert out_of_bounds(names_are_no_counts) == ""
