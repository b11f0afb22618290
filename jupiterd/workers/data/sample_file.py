"""Samples on disk: a folder with `samples.jsonl.zst`, one sample on each line.

Owns reading and writing that file as a stream, with equal bytes for equal samples. Doesn't know
what they mean.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import zstandard

from jupiterd.cycle.lineage import Sample
from jupiterd.errors import CorruptArtifactError

FILE_NAME = "samples.jsonl.zst"

_LEVEL = 3
"""Fixed, because the level decides the bytes; 3 writes 12 MB in under 0.1 s."""


_READ_BYTES = 1 << 17


class LineWriter:
    """Writes lines into one compressed file; a context manager."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        # No threads: they cut the stream into blocks that depend on their number.
        self._stream = zstandard.ZstdCompressor(level=_LEVEL, threads=0).stream_writer(self._file)

    def write(self, line: str) -> None:
        """Append one line, given without its end."""
        self._stream.write(line.encode("utf-8") + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._file.close()


class SampleWriter(LineWriter):
    """Writes samples into a new folder, as they come."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / FILE_NAME)

    def add(self, sample: Sample) -> None:
        """Append one sample."""
        self.write(sample.to_json())


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file, without their ends.

    Raises:
        CorruptArtifactError: the file is cut off or isn't what it should be.
    """
    rest = b""
    # Not zstandard's own reader: that one takes a file that was cut off for one that ends there.
    stream = zstandard.ZstdDecompressor().decompressobj()
    try:
        with path.open("rb") as file:
            while not stream.eof and (data := file.read(_READ_BYTES)):
                *lines, rest = (rest + stream.decompress(data)).split(b"\n")
                yield from (line.decode() for line in lines)
    except (zstandard.ZstdError, UnicodeDecodeError) as error:
        raise CorruptArtifactError(f"{path.name} can't be read: {error}") from error
    if rest or not stream.eof:
        raise CorruptArtifactError(f"{path.name} is cut off")


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
