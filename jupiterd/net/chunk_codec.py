"""Encodes a piece of an artifact for the wire with as few copies of its bytes as possible.

Owns the encoding of the message `FetchPiece`, the same that protobuf would write. Doesn't know
artifacts.

Protobuf for Python copies a bytes field twice when it sends it and once when it receives it. For
gigabytes, that costs as much as encrypting them.
"""

from typing import Final, NamedTuple

from jupiterd.rpc.artifact_pb2 import FetchPiece

_OFFSET: Final = b"\x08"
"""Field 1, a varint."""
_DATA: Final = b"\x12"
"""Field 2, bytes with their length in front."""
_MAX_VARINT_BYTES: Final = 10


class Piece(NamedTuple):
    """Bytes of an artifact and their offset in its files laid end to end."""

    offset: int
    data: memoryview | bytes


def encode_piece(piece: Piece) -> bytes:
    """Return the encoded message."""
    data = piece.data
    return b"".join((_OFFSET, _varint(piece.offset), _DATA, _varint(len(data)), data))


def decode_piece(raw: bytes) -> Piece:
    """Decode the message; its data is a view into `raw`.

    Raises:
        DecodeError: `raw` isn't such a message.
    """
    offset, at = _read_varint(raw, 1) if raw[:1] == _OFFSET else (0, 0)
    if at and raw[at : at + 1] == _DATA:
        length, at = _read_varint(raw, at + 1)
        if at and at + length == len(raw):
            return Piece(offset, memoryview(raw)[at:])
    message = FetchPiece.FromString(raw)  # the same, as somebody else may write it
    return Piece(message.offset, message.data)


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return a number and the offset behind it; offset 0: no valid number starts here."""
    number = 0
    for position, byte in enumerate(raw[at : at + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return number, at + position + 1
    return 0, 0
