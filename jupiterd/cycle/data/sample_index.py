"""Finding one sample among millions: the form of `samples.index`, and of the frames it points into.

Owns the bytes of both, which are equal for equal samples. Doesn't know files: it is given their
bytes, which may be mapped.

Samples lie in independent zstd frames of bounded size. The index has the frames' places, then an
entry for each sample, sorted by id: its frame, and where in it its line begins. So a sample is
found by about twenty looks into the index, and one frame is unpacked for it.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import zstandard

from jupiterd.errors import Bug, CorruptArtifactError

SAMPLES_FILE = "samples.jsonl.zst"
INDEX_FILE = "samples.index"
"""Beside the samples."""

FRAME_BYTES = 256 << 10
"""A frame is closed once it holds so much text: unpacked in a millisecond, and small enough."""

MAX_FRAME_BYTES = 2 << 30
"""A frame holds one sample at least: up to `data_sources.MAX_DOCUMENT_BYTES` characters, of which
JSON makes six bytes each at the worst."""

ID_BYTES = 32

_MAGIC = b"JSAMPLE1"
_HEAD = struct.Struct(">8sQQ")
_OFFSET = struct.Struct(">Q")
_ENTRY = struct.Struct(">32sII")

_LEVEL = 3
"""Fixed, because the level decides the bytes; 3 writes 12 MB in under 0.1 s."""


@dataclass(frozen=True)
class SamplePosition:
    """Where a sample stands."""

    id: str
    first: int
    """Where its frame begins in the file."""
    end: int
    line_at: int
    """Where its line begins in the unpacked frame."""


class IndexBuilder:
    """Notes where samples are written; `encode` gives the bytes of the index."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._ends = [0]

    def note(self, sample_id: str, line_at: int) -> None:
        """Note a sample of the frame that isn't closed yet."""
        self._entries.append(_ENTRY.pack(id_bytes(sample_id), len(self._ends) - 1, line_at))

    def close_frame(self, size_bytes: int) -> None:
        """Note that the frame takes so much of the file."""
        self._ends.append(self._ends[-1] + size_bytes)

    def encode(self) -> bytes:
        """Return the index of all that was noted."""
        head = _HEAD.pack(_MAGIC, len(self._ends) - 1, len(self._entries))
        ends = b"".join(map(_OFFSET.pack, self._ends))
        return b"".join((head, ends, *sorted(self._entries)))


class SampleIndex:
    """Looks samples up in the bytes of an index.

    Raises CorruptArtifactError where they are none.
    """

    def __init__(self, data: memoryview) -> None:
        if len(data) < _HEAD.size:
            raise CorruptArtifactError(f"{INDEX_FILE} is cut off")
        magic, self._frames, self.samples = _HEAD.unpack_from(data)
        self._data = data
        self._entries_at = _HEAD.size + _OFFSET.size * (self._frames + 1)
        if magic != _MAGIC or len(data) != self._entries_at + _ENTRY.size * self.samples:
            raise CorruptArtifactError(f"{INDEX_FILE} isn't what it should be")

    def find(self, prefix: str, most: int = 16) -> list[SamplePosition]:
        """Return up to `most` samples whose id begins so, in the order of their ids."""
        low, high = prefix_bounds(prefix)
        places: list[SamplePosition] = []
        for number in range(self._first_from(low), self.samples):
            place = self._place(number)
            if bytes.fromhex(place.id) > high or len(places) == most:
                break
            places.append(place)
        return places

    def frames(self) -> Iterator[tuple[int, int]]:
        """Yield where each frame begins in the file, and where it ends."""
        for number in range(self._frames):
            yield self._frame(number)

    def ids(self) -> Iterator[str]:
        """Yield every id in their order; one that stands twice comes twice."""
        return (self._place(number).id for number in range(self.samples))

    def _first_from(self, low: bytes) -> int:
        first, end = 0, self.samples
        while first < end:
            middle = (first + end) // 2
            at = self._entries_at + middle * _ENTRY.size
            if bytes(self._data[at : at + ID_BYTES]) < low:
                first = middle + 1
            else:
                end = middle
        return first

    def _place(self, number: int) -> SamplePosition:
        at = self._entries_at + number * _ENTRY.size
        digest, frame, line_at = _ENTRY.unpack_from(self._data, at)
        if frame >= self._frames:
            raise CorruptArtifactError(f"{INDEX_FILE} names a frame that isn't there")
        return SamplePosition(digest.hex(), *self._frame(frame), line_at)

    def _frame(self, number: int) -> tuple[int, int]:
        ends_at = _HEAD.size + number * _OFFSET.size
        (first,) = _OFFSET.unpack_from(self._data, ends_at)
        (end,) = _OFFSET.unpack_from(self._data, ends_at + _OFFSET.size)
        return first, end


def prefix_bounds(prefix: str) -> tuple[bytes, bytes]:
    """Return the least and the greatest id that begins with these hex digits."""
    digits = 2 * ID_BYTES
    return bytes.fromhex(prefix.ljust(digits, "0")), bytes.fromhex(prefix.ljust(digits, "f"))


def id_bytes(sample_id: str) -> bytes:
    """Return a sample's id as 32 bytes; raises Bug where it is none."""
    try:
        digest = bytes.fromhex(sample_id)
    except ValueError as error:
        raise Bug(f"{sample_id[:16]} is no sample's id") from error
    if len(digest) != ID_BYTES:
        raise Bug(f"{sample_id[:16]} is no sample's id")
    return digest


def pack_frame(lines: Sequence[bytes]) -> bytes:
    """Return a frame of these lines, given with their ends; of none it is the mark of the end."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(lines))


def line_in(frame: bytes, line_at: int) -> str:
    """Return the line that begins there in a packed frame.

    Raises:
        CorruptArtifactError: the frame is damaged, or larger than any may be.
    """
    text = _unpacked(frame)
    try:
        return text[line_at : text.index(b"\n", line_at)].decode()
    except ValueError as error:
        raise CorruptArtifactError(f"a frame of samples can't be read: {error}") from error


def lines_in(frame: bytes) -> list[str]:
    """Return all lines of a packed frame, without their ends.

    Raises:
        CorruptArtifactError: the frame is damaged, or larger than any may be.
    """
    try:
        return [line.decode() for line in _unpacked(frame).split(b"\n")[:-1]]
    except ValueError as error:
        raise CorruptArtifactError(f"a frame of samples can't be read: {error}") from error


def _unpacked(frame: bytes) -> bytes:
    try:
        if not 0 <= zstandard.frame_content_size(frame) <= MAX_FRAME_BYTES:
            raise CorruptArtifactError("a frame of samples is larger than any may be")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise CorruptArtifactError(f"a frame of samples can't be read: {error}") from error
