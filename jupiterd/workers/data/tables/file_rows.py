"""The rows of a table that is a file among others.

Owns how each kind of table is opened there: as a stream where it lies on disk.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from jupiterd.errors import MissingExtraError
from jupiterd.workers.data.extract.decompression import (
    UNPACKING_ERRORS,
    opened,
    packing_of,
    unpacked,
    unpacked_name,
)
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.tables.isolated_tables import TableLimits, rows_apart
from jupiterd.workers.data.tables.table_rows import TableRow, row_apart, rows_of


class RowLimits(Protocol):
    """What reading rows may cost, and which field is their text."""

    @property
    def max_bytes(self) -> int:
        """Nothing more is read then."""
        ...

    @property
    def max_document_bytes(self) -> int:
        """A longer row is left out."""
        ...

    @property
    def field(self) -> str:
        """What holds the text."""
        ...


def rows_in_file(
    name: str,
    path: Path | None,
    read: Callable[[], bytes],
    limits: RowLimits,
    language: str = "",
) -> Iterator[TableRow]:
    """Yield the rows of a table.

    Args:
        name: of the file, by which its kind is known.
        path: where it lies on disk; None: nowhere.
        read: returns its bytes where it lies nowhere.
        limits: what it may cost.
        language: what texts of this place are in; empty: not known.

    Raises:
        UnreadableError: it can't be read at all, or its reader isn't installed.
    """
    size = path.stat().st_size if path is not None and path.exists() else 0
    try:
        if unpacked_name(name).lower().endswith(".parquet"):
            yield from _of_parquet(name, path, limits)
            return
        stream = unpacked(io.BytesIO(read()), name) if path is None else opened(path)
        with stream:
            most = limits.max_document_bytes, limits.max_bytes
            known = 0 if packing_of(name) else size
            yield from rows_of(unpacked_name(name), stream, *most, language, known)
    except FileNotFoundError as error:
        raise UnreadableError(SkipReason.VANISHED) from error
    except UNPACKING_ERRORS as error:
        raise UnreadableError(SkipReason.BROKEN, size) from error
    except OSError as error:
        raise UnreadableError(SkipReason.UNREADABLE, size) from error
    except MissingExtraError as error:
        raise UnreadableError(SkipReason.NEEDS_EXTRA, size, error.hint) from error


def _of_parquet(name: str, path: Path | None, limits: RowLimits) -> Iterator[TableRow]:
    if path is None or packing_of(name):
        raise UnreadableError(SkipReason.UNKNOWN_FORM)
    bounds = TableLimits(max_chars=limits.max_document_bytes, max_chars_in_all=limits.max_bytes)
    found = rows_apart("parquet", {"path": str(path)}, (limits.field,), bounds)
    for number, row in enumerate(found, 1):
        yield row_apart(row, limits.field, number)
