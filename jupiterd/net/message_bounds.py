"""Checks that all numbers of a received message are within their bounds, before anything uses them.

Owns the walk through any message, and the list of fields that may be infinite or NaN. Doesn't know
what the numbers mean; the bounds are those of `cluster.values.bounds`.

The check skips 32-bit integers and the keys of maps, which are names.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from jupiterd.cluster.values.bounds import is_count, is_real

MAYBE_UNKNOWN: Final = frozenset(
    {
        "LossPoint.loss",
        "LossPoint.at_s",
        "WorkCheckpoint.loss",
        "WorkCheckpoint.horizon",
        "WorkFinished.counts",
        "WorkProgress.values",
        "WorkPseudoGradient.held_out",
        "WorkPseudoGradient.norm",
    }
)
"""Fields that may be infinite or NaN: the training diverged, or the value couldn't be measured."""

_WHOLE: Final = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_REAL: Final = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})


def out_of_bounds(message: Message) -> str:
    """Return the name of the first field that holds a number out of bounds; empty if none does."""
    if not _has_numbers(message.DESCRIPTOR):
        return ""
    for field, value in message.ListFields():
        name = f"{message.DESCRIPTOR.name}.{field.name}"
        for each in _values(field, value):
            if isinstance(each, Message):
                if found := out_of_bounds(each):
                    return found
            elif not _is_sound(_kind(field), each, name):
                return name
    return ""


def _is_sound(kind: int, value: Any, name: str) -> bool:  # noqa: ANN401 - protobuf's own type
    if kind in _WHOLE:
        return is_count(value)
    if kind in _REAL:
        return is_real(value) or (name in MAYBE_UNKNOWN and not math.isfinite(value))
    return True


def _values(field: FieldDescriptor, value: Any) -> list[Any]:  # noqa: ANN401 - as above
    if _is_map(field):
        return list(cast("Mapping[Any, Any]", value).values())
    return list(value) if field.is_repeated else [value]


def _kind(field: FieldDescriptor) -> int:
    """Return the C++ type number of a field's values; for a map, of its values, not its keys."""
    return _map_value(field).cpp_type if _is_map(field) else field.cpp_type


def _is_map(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry


def _map_value(field: FieldDescriptor) -> FieldDescriptor:
    return cast("Descriptor", field.message_type).fields_by_name["value"]


@cache
def _has_numbers(kind: Descriptor) -> bool:
    """Return whether messages of this type can hold a number to check."""
    fields = kind.fields_by_name.values()
    below = (_map_value(field) if _is_map(field) else field for field in fields)
    return any(
        field.cpp_type in _WHOLE | _REAL
        or (field.message_type is not None and _has_numbers(field.message_type))
        for field in below
    )
