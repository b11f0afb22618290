"""Parquet files, read in batches; pyarrow does it, which is large and therefore an extra.

Owns the way to that library.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jupiterd.cycle.data_sources import ParquetSource
from jupiterd.errors import MissingExtraError
from jupiterd.workers.data.collectors.collector import Found, Visit
from jupiterd.workers.data.collectors.table_files import files_below
from jupiterd.workers.data.collectors.tables import Row, documents_of_rows
from jupiterd.workers.data.skips import SkipReason

_BATCH_ROWS = 256


class _Library(NamedTuple):
    """What is used of pyarrow."""

    ParquetFile: Any
    ArrowException: type[Exception]


class Parquet:
    """A file, or those of a folder."""

    collector = "parquet@1"

    def __init__(self, source: ParquetSource) -> None:
        self._source = source
        self._path = Path(source.path).expanduser()
        self.name = f"the table {self._path}"

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every row that has a text.

        Raises:
            MissingExtraError: pyarrow isn't installed.
        """
        library = _library()
        files = files_below(self._path, (".parquet",), visit)
        rows = (row for name, path in files for row in self._rows(library, name, path))
        yield from documents_of_rows(rows, self._source, visit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield nothing: files are read again, and rows compared by their text."""
        return iter(())

    def _rows(self, library: _Library, name: str, path: Path) -> Iterator[Row]:
        place, number = f"parquet:{name}", 0
        source = self._source
        wanted = {source.field, source.license_field, source.cluster_field, source.uri_field}
        try:
            with library.ParquetFile(path) as file:
                columns = [column for column in file.schema_arrow.names if column in wanted]
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                    for row in batch.to_pylist():
                        number += 1
                        yield f"{place}#{number}", row
        except FileNotFoundError:
            yield place, SkipReason.VANISHED
        except (OSError, ValueError, library.ArrowException):  # the last: what it can't read yet
            yield place, SkipReason.BROKEN


def _library() -> _Library:
    try:
        from pyarrow import (  # pyright: ignore[reportMissingImports] - an extra of its own
            ArrowException,
            parquet,
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "Parquet files need the package pyarrow, which isn't installed",
            "pip install pyarrow on one of the machines, or give it a .jsonl file",
        ) from error
    return _Library(parquet.ParquetFile, ArrowException)
