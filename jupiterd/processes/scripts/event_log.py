"""The event log of a script on disk: one process appends, others read from any offset.

Owns the format of a record and the bound of the log. Doesn't know who writes or reads it, or why.

A log is a folder of segments, `events.OFFSET`, each named by its first offset. An offset counts the
bytes since the first event, so a reader that reconnects names its offset and reads nothing twice.
The writer deletes the oldest segment when there are too many; a reader that wanted it gets the
number of bytes that it missed. One system call writes a record, so a reader sees half of one only
for a moment.
"""

import contextlib
import json
import os
import struct
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from jupiterd.errors import CorruptArtifactError
from jupiterd.processes.scripts.events import (
    Ended,
    Ending,
    Notice,
    Over,
    Printed,
    ScriptEvent,
    Skipped,
)
from jupiterd.protocol.frames import ConnectionsRefused

SEGMENT_BYTES: Final = 4 << 20
SEGMENTS: Final = 8
"""Number of segments that are kept, together 32 MiB: the last part of a long output."""

MAX_DATA_BYTES: Final = 1 << 16
MAX_SEGMENT_BYTES: Final = 1 << 40

_HEAD: Final = struct.Struct(">BiI")
"""Kind, rank, and the number of bytes that follow (big-endian: uint8, int32, uint32)."""

_PRINTED, _PRINTED_ERROR, _ENDED, _OVER, _ENDING, _SKIPPED, _NOTICED, _KNOCKED = range(1, 9)
_PREFIX: Final = "events."


class EventWriter:
    """Appends events to a folder; each log has one writer."""

    def __init__(
        self, folder: Path, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._segments = segments
        self._begin = self._size = self._left_out = 0
        self._file = self._opened(0)

    def append(self, event: ScriptEvent) -> None:
        """Write one event; drop it if the disk is full, so that the ranks go on.

        Once there is room again, a `Skipped` record tells the number of dropped bytes.
        """
        for record in _records(event):
            if self._left_out and self._is_written(*_records(Skipped(self._left_out))):
                self._left_out = 0
            if self._left_out or not self._is_written(record):
                self._left_out += len(record)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _is_written(self, record: bytes) -> bool:
        with contextlib.suppress(OSError):
            if self._size >= self._segment_bytes:
                self._next_segment()
            written = os.write(self._file, record)
            if written == len(record):
                self._size += written
                return True
            os.ftruncate(self._file, self._size)  # the disk is full
        return False

    def _next_segment(self) -> None:
        begin = self._begin + self._size
        before, self._file = self._file, self._opened(begin)
        self._begin, self._size = begin, 0
        os.close(before)
        for old in segments(self._folder)[: -self._segments]:
            with contextlib.suppress(OSError):  # retried with the next segment
                (self._folder / name_of(old)).unlink()

    def _opened(self, begin: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._folder / name_of(begin), flags, 0o600)


class EventReader:
    """Reads the events of a folder from an offset on, up to the last complete one."""

    def __init__(self, folder: Path, offset: int = 0) -> None:
        self._folder = folder
        self.offset = offset
        """The offset of the next event to read."""

    def read(self, most_bytes: int = 1 << 20) -> Generator[ScriptEvent]:
        """Yield the available events, about `most_bytes` bytes of them; advances `offset`.

        Raises:
            CorruptArtifactError: no event starts at the offset, or a file is damaged.
        """
        end = self.offset + most_bytes
        while self.offset < end:
            before = self.offset
            if skipped := self._skip_deleted():
                yield Skipped(skipped)
            yield from self._read_segment(end)
            if self.offset == before:
                return

    def _skip_deleted(self) -> int:
        """Skip the deleted segments; return their number of bytes."""
        known = segments(self._folder)
        if not known or known[0] <= self.offset:
            return 0
        skipped, self.offset = known[0] - self.offset, known[0]
        return skipped

    def _read_segment(self, end: int) -> Generator[ScriptEvent]:
        begin = max((s for s in segments(self._folder) if s <= self.offset), default=None)
        if begin is None or self.offset - begin > MAX_SEGMENT_BYTES:  # beyond the end of the log
            return
        path = self._folder / name_of(begin)
        # The writer may delete it at this moment.
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(self.offset - begin)
            while self.offset < end and (record := _record(file.read(_HEAD.size), file.read)):
                event, size = record
                self.offset += size
                yield event


def segments(folder: Path) -> list[int]:
    """Return the first offsets of a log's segments, in ascending order."""
    names = (entry.name.removeprefix(_PREFIX) for entry in folder.glob(f"{_PREFIX}*"))
    return sorted(int(name) for name in names if name.isdecimal())


def name_of(begin: int) -> str:
    """Return the name of the segment that starts at an offset."""
    return f"{_PREFIX}{begin:020d}"


def _records(event: ScriptEvent) -> Generator[bytes]:
    match event:
        case Printed(rank, is_error, data):
            kind = _PRINTED_ERROR if is_error else _PRINTED
            for at in range(0, len(data), MAX_DATA_BYTES):
                piece = data[at : at + MAX_DATA_BYTES]
                yield _HEAD.pack(kind, rank, len(piece)) + piece
        case Ended(rank, status):
            yield _HEAD.pack(_ENDED, rank, 4) + status.to_bytes(4, "big")
        case Over(reason, code, hint):
            data = json.dumps([reason[:4096], code[:256], hint[:4096]]).encode()
            yield _HEAD.pack(_OVER, 0, len(data)) + data
        case Ending(reason):
            words = reason.encode()[:4096]
            yield _HEAD.pack(_ENDING, 0, len(words)) + words
        case Skipped(size_bytes):
            yield _HEAD.pack(_SKIPPED, 0, 8) + size_bytes.to_bytes(8, "big")
        case Notice(words):
            data = words.encode()[:4096]
            yield _HEAD.pack(_NOTICED, 0, len(data)) + data
        case ConnectionsRefused(count, hosts):
            data = json.dumps([count, *hosts]).encode()
            yield _HEAD.pack(_KNOCKED, 0, len(data)) + data


def _record(head: bytes, read: Callable[[int], bytes]) -> tuple[ScriptEvent, int] | None:
    """Return an event and the length of its record in bytes; None if it isn't complete yet."""
    if len(head) < _HEAD.size:
        return None
    kind, rank, size = _HEAD.unpack(head)
    if not _PRINTED <= kind <= _KNOCKED or size > MAX_DATA_BYTES:
        raise CorruptArtifactError("what a script printed can't be read from there on")
    data = read(size)
    return (_event(kind, rank, data), _HEAD.size + size) if len(data) == size else None


def _event(kind: int, rank: int, data: bytes) -> ScriptEvent:
    if kind == _ENDED:
        return Ended(rank, int.from_bytes(data, "big"))
    if kind == _SKIPPED:
        return Skipped(int.from_bytes(data, "big"))
    if kind in {_ENDING, _NOTICED}:
        words = data.decode("utf-8", "replace")
        return Ending(words) if kind == _ENDING else Notice(words)
    if kind in {_PRINTED, _PRINTED_ERROR}:
        return Printed(rank, is_error=kind == _PRINTED_ERROR, data=data)
    return _list_of(kind, data)


def _list_of(kind: int, data: bytes) -> ScriptEvent:
    """Read an event whose data is a JSON list."""
    try:
        first, *more = json.loads(data)
        if kind == _KNOCKED:
            return ConnectionsRefused(int(first), list(map(str, more)))
        code, hint = map(str, more)
    except (ValueError, TypeError) as error:
        raise CorruptArtifactError("what a script printed can't be read from there on") from error
    return Over(str(first), code, hint)
