"""Files of JSON with one object on each line, also packed with gzip or Zstandard.

Owns how lines are cut and parsed, and how far a packed file is unpacked.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

import zstandard

from jupiterd.cycle.data_sources import JsonlSource
from jupiterd.workers.data.collectors.collector import Found, Visit
from jupiterd.workers.data.collectors.table_files import files_below
from jupiterd.workers.data.collectors.tables import Row, documents_of_rows
from jupiterd.workers.data.skips import SkipReason

SUFFIXES = (".jsonl", ".ndjson")
PACKED = ("", ".gz", ".zst")

_MAX_WINDOW_BYTES = 128 << 20
"""Of Zstandard; a larger one than its own default is a way to fill the memory."""


class Jsonl:
    """A file, or those of a folder."""

    collector = "jsonl@1"

    def __init__(self, source: JsonlSource) -> None:
        self._source = source
        self._path = Path(source.path).expanduser()
        self.name = f"the table {self._path}"
        self._left_bytes = source.max_bytes
        """Of all files together."""

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every row that has a text."""
        endings = tuple(suffix + packed for suffix in SUFFIXES for packed in PACKED)
        files = files_below(self._path, endings, visit)
        within = takewhile(lambda _file: self._left_bytes > 0, files)
        rows = (row for name, path in within for row in self._rows(name, path))
        yield from documents_of_rows(rows, self._source, visit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield nothing: files are read again, and rows compared by their text."""
        return iter(())

    def _rows(self, name: str, path: Path) -> Iterator[Row]:
        place = f"jsonl:{name}"
        try:
            with _opened(path) as stream:
                yield from self._lines(place, stream)
        except FileNotFoundError:
            yield place, SkipReason.VANISHED
        except (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError):
            yield place, SkipReason.BROKEN
        except OSError:
            yield place, SkipReason.UNREADABLE

    def _lines(self, place: str, stream: IO[bytes]) -> Iterator[Row]:
        most = self._source.max_document_bytes
        number = 0
        while line := stream.readline(most + 1):
            number += 1
            self._left_bytes -= len(line)
            is_whole = line.endswith(b"\n") or len(line) <= most
            yield f"{place}#{number}", _parsed(line) if is_whole else SkipReason.TOO_LARGE
            while not is_whole and self._left_bytes > 0 and (rest := stream.readline(1 << 20)):
                self._left_bytes -= len(rest)
                is_whole = rest.endswith(b"\n")
            if self._left_bytes <= 0:
                yield f"{place}#{number + 1}", SkipReason.OVER_BUDGET
                return


def _parsed(line: bytes) -> Mapping[str, Any] | SkipReason:
    try:
        row: Any = json.loads(line)
    except UnicodeDecodeError:
        return SkipReason.NOT_TEXT
    except (ValueError, RecursionError):
        return SkipReason.EMPTY if not line.strip() else SkipReason.BROKEN
    return row if isinstance(row, dict) else SkipReason.BROKEN


def _opened(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.open(path))
    if path.suffix == ".zst":
        unpacking = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        return io.BufferedReader(
            unpacking.stream_reader(path.open("rb"), read_across_frames=True, closefd=True)
        )
    return path.open("rb")
