"""Rows of one Parquet file; pyarrow reads it, which is large and therefore an extra.

Owns the way to that library.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.errors import MissingExtraError
from jupiterd.locations import pip_install
from jupiterd.workers.data.skips import SkipReason

COLUMNS = "jupiter:columns"
"""In a row without the field that holds the text: which columns there are."""

_BATCH_ROWS = 16
"""Held in memory at a time: a row may be as large as a book, and its file a few kilobytes."""


def rows(path: Path, fields: Sequence[str]) -> Iterator[Mapping[str, Any] | SkipReason]:
    """Yield the rows with these fields alone; the reason comes last where the file can't be read.

    Raises:
        MissingExtraError: pyarrow isn't installed.
    """
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports] - an extra of its own
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "Parquet files need the package pyarrow, which isn't installed",
            f"{pip_install('pyarrow')} on one of the machines, or give it a .jsonl file",
        ) from error
    try:
        yield from _rows(parquet, path, fields)
    except FileNotFoundError:
        yield SkipReason.VANISHED
    except MemoryError:
        yield SkipReason.OUT_OF_MEMORY
    except Exception:  # noqa: BLE001 - it raises anything at all at what strangers wrote
        yield SkipReason.BROKEN


def _rows(library: Any, path: Path, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
    with library.ParquetFile(path) as file:
        names = file.schema_arrow.names
        columns = [name for name in names if name in fields]
        lacking = {} if fields[0] in names else {COLUMNS: ", ".join(names)}
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns, use_threads=False)
        for batch in batches:
            rows = batch.to_pylist() if columns else [dict[str, Any]()] * batch.num_rows
            yield from ({**row, **lacking} for row in rows)
