"""Odd bytes without end, each from a number alone: the same number always gives the same ones.

Owns how a good message is damaged, and how one of any kind is filled. Doesn't know what reads it.
"""

import json
import math
import random
from collections.abc import Callable
from typing import Any

import msgpack
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

MAX_BYTES = 1 << 16
MAX_LEVELS = 4

NUMBERS = (0, 1, 2, 127, 128, 2**31, 2**32 - 1, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
REALS = (0.0, -0.0, 1.5, -1e308, 1e308, 5e-324, math.inf, -math.inf, math.nan)
TEXTS = (
    "", "a" * 32, "A" * 32, "g" * 32, "a" * 64, "\x1b[2J", "a\0b", "../../etc", "\u202egnp", "\r\n",
    "9" * 5000, "[::1", "127.0.0.1:7946", "fe80::1%eth0", "nan", "ß" * 40, "run/1", "-1",
)  # fmt: skip

Chance = random.Random


def number(chance: Chance) -> int:
    """Return a whole number of 64 bits, often one at an edge."""
    return chance.choice(NUMBERS) if chance.random() < 0.6 else chance.getrandbits(64)


def text(chance: Chance) -> str:
    """Return some text."""
    if chance.random() < 0.7:
        return chance.choice(TEXTS)
    return "".join(map(chr, chance.choices(range(1, 0xD7FF), k=chance.randrange(20))))


def raw(chance: Chance) -> bytes:
    """Return bytes that mean nothing, or a packed value."""
    if chance.random() < 0.5:
        return chance.randbytes(chance.randrange(64))
    return packed(plain(chance))


def plain(chance: Chance, levels: int = MAX_LEVELS) -> Any:
    """Return what JSON or msgpack can say."""
    kind = chance.randrange(8 if levels else 6)
    if kind == 6:
        return [plain(chance, levels - 1) for _ in range(chance.randrange(5))]
    if kind == 7:
        return {text(chance): plain(chance, levels - 1) for _ in range(chance.randrange(5))}
    made: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: chance.random() < 0.5,
        lambda: number(chance),
        lambda: -(number(chance) >> 1),
        lambda: chance.choice(REALS),
        lambda: text(chance),
    )
    return made[kind]()


def packed(value: object) -> bytes:
    """Return the msgpack of a value."""
    return msgpack.packb(value, unicode_errors="replace") or b""


def as_json(value: object) -> bytes:
    """Return a line of JSON."""
    return json.dumps(value).encode()


def filled(chance: Chance, kind: Descriptor, levels: int = MAX_LEVELS) -> Message:
    """Return a message of that kind, with something in many of its fields."""
    message = GetMessageClass(kind)()
    for field in kind.fields:
        if chance.random() < 0.6:
            _fill(chance, message, field, levels)
    return message


def _fill(chance: Chance, message: Any, field: FieldDescriptor, levels: int) -> None:
    below = field.message_type
    if below is not None and below.GetOptions().map_entry:
        _fill_map(chance, getattr(message, field.name), below)
    elif below is not None:
        if levels:
            _fill_message(chance, message, field, below, levels - 1)
    elif field.is_repeated:
        getattr(message, field.name).extend(
            _value(chance, field) for _ in range(chance.randrange(4))
        )
    else:
        setattr(message, field.name, _value(chance, field))


def _fill_message(
    chance: Chance, message: Any, field: FieldDescriptor, kind: Descriptor, levels: int
) -> None:
    for _ in range(chance.randrange(3) if field.is_repeated else 1):
        made = filled(chance, kind, levels)
        place = getattr(message, field.name)
        if field.is_repeated:
            place.append(made)
        else:
            place.CopyFrom(made)
            place.SetInParent()


def _fill_map(chance: Chance, place: Any, entry: Descriptor) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(chance.randrange(3)):
        if value.message_type is None:
            place[_value(chance, key)] = _value(chance, value)


def _value(chance: Chance, field: FieldDescriptor) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return raw(chance) if field.type == FieldDescriptor.TYPE_BYTES else text(chance)
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return chance.choice(REALS)
        case FieldDescriptor.CPPTYPE_UINT32:
            return number(chance) & 0xFFFF_FFFF
        case FieldDescriptor.CPPTYPE_INT32 | FieldDescriptor.CPPTYPE_ENUM:
            return number(chance) & 0x7FFF_FFFF
        case FieldDescriptor.CPPTYPE_INT64:
            return number(chance) >> 1
        case _:
            return number(chance)


def damaged(chance: Chance, good: bytes) -> bytes:
    """Return bytes that begin to make sense: as they are, changed, cut, doubled, or none of it."""
    out = bytearray(good)
    for _ in range(chance.choice((0, 1, 1, 2, 4, 8))):
        _damage(chance, out)
    return bytes(out[:MAX_BYTES])


def _damage(chance: Chance, out: bytearray) -> None:
    place = chance.randrange(len(out) + 1)
    match chance.randrange(7):
        case 0 if place < len(out):
            out[place] = chance.randrange(256)
        case 1:
            del out[place:]
        case 2:
            out[place:place] = chance.randbytes(chance.randrange(1, 9))
        case 3:
            out[place:place] = out[: chance.randrange(64)]
        case 4:
            del out[place : place + chance.randrange(1, 9)]
        case 5:  # how both of our forms write a length or a large number
            out[place : place + 9] = chance.choice((b"\xcf", b"\xdd", b"\xc6")) + b"\xff" * 8
        case _:
            out[place:place] = chance.choice((b"\x91", b"[", b"\x81\xa1a", b"\x0a\xff")) * 400
