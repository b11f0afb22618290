"""Files of JSON with one object on each line, also packed with gzip or Zstandard.

Owns how rows are named, and how far a packed file is unpacked.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from jupiterd.cycle.domain.data_sources import JsonlSource
from jupiterd.path_text import path_of, path_text
from jupiterd.workers.data.collectors.collector import Found, Visit
from jupiterd.workers.data.collectors.table_files import files_below, size_of
from jupiterd.workers.data.collectors.tables import PlacedRow, documents_of_rows
from jupiterd.workers.data.extract.decompression import UNPACKING_ERRORS, opened, packing_of
from jupiterd.workers.data.skips import SkipReason
from jupiterd.workers.data.tables.table_rows import JSON_LINES, TableRow, rows_of

SUFFIXES = (".jsonl", ".ndjson")
PACKED = ("", ".gz", ".zst")


class Jsonl:
    """A file, or those of a folder."""

    collector = "jsonl@2"

    def __init__(self, source: JsonlSource) -> None:
        self._source = source
        self._path = path_of(source.path)
        self.name = f"the table {path_text(self._path)}"
        self._left_bytes = source.max_bytes
        """Of all files together."""

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every row that has a text."""
        endings = tuple(suffix + packed for suffix in SUFFIXES for packed in PACKED)
        files = files_below(self._path, endings, visit)
        rows = (row for name, path in files for row in self._rows(name, path, visit.language))
        yield from documents_of_rows(rows, self._source, visit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield nothing: files are read again, and rows compared by their text."""
        return iter(())

    def _rows(self, name: str, path: Path, language: str) -> Iterator[PlacedRow]:
        place, size = f"jsonl:{name}", size_of(path)
        if self._left_bytes <= 0:
            yield place, _lost(SkipReason.OVER_BUDGET, size)
            return
        try:
            with opened(path) as stream:
                yield from self._lines(place, stream, language, 0 if packing_of(name) else size)
        except FileNotFoundError:
            yield place, _lost(SkipReason.VANISHED)
        except UNPACKING_ERRORS:
            yield place, _lost(SkipReason.BROKEN, size)
        except OSError:
            yield place, _lost(SkipReason.UNREADABLE, size)

    def _lines(
        self, place: str, stream: IO[bytes], language: str, size: int
    ) -> Iterator[PlacedRow]:
        most, left = self._source.max_document_bytes, self._left_bytes
        for row in rows_of(JSON_LINES[0], stream, most, left, language, size):
            self._left_bytes -= row.size_bytes
            yield f"{place}#{row.number}", row


def _lost(reason: SkipReason, size_bytes: int = 0) -> TableRow:
    return TableRow({}, size_bytes, reason)
