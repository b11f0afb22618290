"""Bytes of lines as a stream whose lines end with a line feed, in an encoding that has ASCII in it.

Owns telling the wide encodings of Unicode and the line ends of old Macs, by how a stream begins.
Doesn't know what is in the lines, or the other encodings (`encodings`).
"""

import codecs
import io
from collections.abc import Callable
from typing import IO, Final

HEAD_BYTES: Final = 1 << 16
PIECE_BYTES: Final = 1 << 16

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MIN_ZEROS: Final = 0.25
"""Of the bytes on one side: what is ASCII in UTF-16 has a zero byte each."""


def with_plain_lines(stream: IO[bytes]) -> IO[bytes]:
    """Return a stream of the same lines, as most streams have them anyway."""
    head = _head(stream)
    if wide := _wide_encoding(head):
        decoder = codecs.getincrementaldecoder(wide)("replace")

        def unwidened(data: bytes, *, is_last: bool) -> bytes:
            return decoder.decode(data, is_last).encode("utf-8", "replace")

        recoded = _buffered(_Recoded(head, stream, unwidened))
        return with_plain_lines(recoded)  # its lines may end as those of an old Mac
    if b"\r" in head and b"\n" not in head:
        return _buffered(_Recoded(head, stream, _with_line_feeds))
    return _buffered(_Recoded(head, stream, _as_it_is))


def _head(stream: IO[bytes]) -> bytes:
    head = b""
    while len(head) < HEAD_BYTES and (more := stream.read(HEAD_BYTES - len(head))):
        head += more
    return head


def _wide_encoding(head: bytes) -> str:
    """Return the encoding of Unicode with more than a byte for each character; empty: none."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    for side, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        half = head[side::2]
        if half.count(0) > _MIN_ZEROS * len(half) and 0 not in head[1 - side :: 2]:
            return encoding
    return ""


def _with_line_feeds(data: bytes, *, is_last: bool) -> bytes:
    del is_last
    return data.replace(b"\r", b"\n")


def _as_it_is(data: bytes, *, is_last: bool) -> bytes:
    del is_last
    return data


class _Recoded(io.RawIOBase):
    """The rest of a stream behind its beginning, each piece recoded."""

    def __init__(self, head: bytes, stream: IO[bytes], recode: Callable[..., bytes]) -> None:
        super().__init__()
        self._head, self._stream, self._recode = head, stream, recode
        self._left = b""
        self._is_over = False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fill some of the buffer; return how many bytes."""
        while not (self._left or self._is_over):
            piece, self._head = self._head or self._stream.read(PIECE_BYTES), b""
            self._is_over = not piece
            self._left = self._recode(piece, is_last=self._is_over)
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


def _buffered(stream: _Recoded) -> IO[bytes]:
    return io.BufferedReader(stream)
