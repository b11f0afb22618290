"""Parquet files, each read by a process of its own: a small one may unpack to any size.

Owns which fields are asked for and how rows are named.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jupiterd.cycle.domain.data_sources import ParquetSource
from jupiterd.path_text import path_of, path_text
from jupiterd.workers.data.collectors.collector import Found, Visit
from jupiterd.workers.data.collectors.table_files import files_below
from jupiterd.workers.data.collectors.tables import (
    PlacedRow,
    documents_of_rows,
    fields_of,
    limits_of,
)
from jupiterd.workers.data.tables.isolated_tables import TableLimits, rows_apart
from jupiterd.workers.data.tables.table_rows import row_apart


class Parquet:
    """A file, or those of a folder."""

    collector = "parquet@2"

    def __init__(self, source: ParquetSource, limits: TableLimits | None = None) -> None:
        self._source = source
        self._limits = limits or limits_of(source)
        self._path = path_of(source.path)
        self.name = f"the table {path_text(self._path)}"

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every row that has a text.

        Raises:
            MissingExtraError: pyarrow isn't installed.
        """
        files = files_below(self._path, (".parquet",), visit)
        rows = (row for name, path in files for row in self._rows(name, path))
        yield from documents_of_rows(rows, self._source, visit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield nothing: files are read again, and rows compared by their text."""
        return iter(())

    def _rows(self, name: str, path: Path) -> Iterator[PlacedRow]:
        order, fields = {"path": str(path)}, fields_of(self._source)
        for number, row in enumerate(rows_apart("parquet", order, fields, self._limits), 1):
            yield f"parquet:{name}#{number}", row_apart(row, self._source.field, number)
