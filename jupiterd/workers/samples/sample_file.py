"""Samples on disk: a folder with `samples.jsonl.zst`, one sample on each line, and its index.

Owns reading and writing these files as streams, with equal bytes for equal samples. Doesn't know
what samples mean, or how one is found among many (`cycle.data.sample_index`).

The file is a row of independent zstd frames, the last of which is empty: so a file that was cut off
is told from one that ends there.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import zstandard

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.sample_index import (
    FRAME_BYTES,
    INDEX_FILE,
    SAMPLES_FILE,
    IndexBuilder,
    pack_frame,
)
from jupiterd.errors import CorruptArtifactError

FILE_NAME = SAMPLES_FILE

_READ_BYTES = 1 << 17


class LineWriter:
    """Writes lines into one compressed file; a context manager."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._index = IndexBuilder()
        self._lines: list[bytes] = []
        self._frame_bytes = 0

    def write(self, line: str) -> None:
        """Append one line, given without its end."""
        data = line.encode("utf-8") + b"\n"
        self._lines.append(data)
        self._frame_bytes += len(data)
        if self._frame_bytes >= FRAME_BYTES:
            self._close_frame()

    def _close_frame(self) -> None:
        frame = pack_frame(self._lines)
        self._file.write(frame)
        self._index.close_frame(len(frame))
        self._lines, self._frame_bytes = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            if self._lines:
                self._close_frame()
            self._close_frame()  # an empty one: the end


class SampleWriter(LineWriter):
    """Writes samples into a new folder, as they come; their index when it is closed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        super().__init__(folder / FILE_NAME)

    def add(self, sample: Sample) -> None:
        """Append one sample."""
        self.add_line(sample.id, sample.to_json())

    def add_line(self, sample_id: str, line: str) -> None:
        """Append one sample that is a line already."""
        self._index.note(sample_id, self._frame_bytes)
        self.write(line)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        (self._folder / INDEX_FILE).write_bytes(self._index.encode())


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file, without their ends.

    Raises:
        CorruptArtifactError: the file is cut off or isn't what it should be.
    """
    rest = b""
    try:
        with path.open("rb") as file:
            for data in _unpacked(file, path.name):
                *lines, rest = (rest + data).split(b"\n")
                yield from (line.decode() for line in lines)
    except (zstandard.ZstdError, UnicodeDecodeError) as error:
        raise CorruptArtifactError(f"{path.name} can't be read: {error}") from error
    if rest:
        raise CorruptArtifactError(f"{path.name} is cut off")


def _unpacked(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the content frame by frame, up to the empty one."""
    # Not zstandard's own reader: that one takes a file that was cut off for one that ends there.
    stream, size_bytes = zstandard.ZstdDecompressor().decompressobj(), 0
    data = b""
    while data := data or file.read(_READ_BYTES):
        unpacked = stream.decompress(data)
        size_bytes += len(unpacked)
        yield unpacked
        data = b""
        if stream.eof:
            if not size_bytes:
                return
            data = stream.unused_data
            stream, size_bytes = zstandard.ZstdDecompressor().decompressobj(), 0
    raise CorruptArtifactError(f"{name} is cut off")


def read_samples(folder: Path) -> Iterator[Sample]:
    """Yield the samples of a folder in their order.

    Raises:
        CorruptArtifactError: the file is cut off or isn't what it should be.
    """
    return map(Sample.from_json, read_lines(folder / FILE_NAME))


def read_all(folders: Iterable[Path]) -> Iterator[Sample]:
    """Yield the samples of several folders, one folder after the other."""
    for folder in folders:
        yield from read_samples(folder)
