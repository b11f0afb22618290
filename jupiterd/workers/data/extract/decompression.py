"""Files packed with gzip or Zstandard, unpacked as streams.

Owns which endings stand for which, and how much memory unpacking may take. How much is unpacked is
bounded by who reads.
"""

import gzip
import io
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

import zstandard

from jupiterd.workers.data.skips import SkipReason, UnreadableError

PACKED = (".gz", ".zst")

UNPACKING_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError)
"""What a broken packed file raises while it is read."""

_MAX_WINDOW_BYTES = 128 << 20
"""Of Zstandard; a larger one than its own default is a way to fill the memory."""


def unpacked_name(name: str) -> str:
    """Return a file's name as it is without what it is packed with."""
    return name[: -len(packing)] if (packing := packing_of(name)) else name


def packing_of(name: str) -> str:
    """Return the ending that says what a file is packed with; empty where it isn't."""
    ending = PurePosixPath(name.lower()).suffix
    return ending if ending in PACKED else ""


def unpacked_within(data: bytes, name: str, max_bytes: int) -> bytes:
    """Return what a file of this name is packed from; its own bytes where it isn't.

    Raises:
        UnreadableError: it is broken, or more than so many bytes.
    """
    if not packing_of(name):
        return data
    try:
        whole = unpacked(io.BytesIO(data), name).read(max_bytes + 1)
    except UNPACKING_ERRORS as error:
        raise UnreadableError(SkipReason.BROKEN) from error
    if len(whole) > max_bytes:
        raise UnreadableError(SkipReason.TOO_LARGE)
    return whole


def opened(path: Path) -> IO[bytes]:
    """Return a file's bytes as a stream, unpacked by its ending.

    Raises:
        OSError: it can't be opened.
    """
    if packing_of(path.name) == ".gz":
        return io.BufferedReader(gzip.open(path))  # pyright: ignore[reportArgumentType]
    return unpacked(path.open("rb"), path.name)


def unpacked(stream: IO[bytes], name: str) -> IO[bytes]:
    """Return the stream of what a stream of a file of this name is packed from."""
    packing = packing_of(name)
    if packing == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))  # pyright: ignore[reportArgumentType]
    if packing == ".zst":
        unpacking = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        found = unpacking.stream_reader(stream, read_across_frames=True, closefd=True)
        return io.BufferedReader(found)  # pyright: ignore[reportArgumentType]
    return stream
