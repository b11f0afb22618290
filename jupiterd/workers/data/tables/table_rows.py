"""Rows of tables in files: JSON with an object on each line or in a list, and CSV.

Owns how they are cut and parsed, and which part of a row is its text. Doesn't know what becomes of
a row. Parquet has a process of its own (`isolated_tables`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Any, cast

from jupiterd.cycle.data.row_advice import row_advice
from jupiterd.workers.data.extract.byte_account import CountedStream, Shares
from jupiterd.workers.data.extract.encodings import Legacy, decoded
from jupiterd.workers.data.extract.line_stream import with_plain_lines
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.tables.csv_records import records
from jupiterd.workers.data.tables.parquet_file import COLUMNS

JSON_LINES = (".jsonl", ".ndjson")
CSV = (".csv", ".tsv")
MAX_CSV_BYTES = 256 << 20
"""A larger file isn't read as CSV: its encoding is told by the whole of it."""

_NAMED_FIELDS = 12


@dataclass(frozen=True)
class TableRow:
    """One row, or why it can't be read."""

    fields: Mapping[str, Any]
    size_bytes: int
    reason: SkipReason | None = None
    detail: str = ""
    number: int = 0
    """Of its line or row, from 1."""


def is_table(name: str) -> bool:
    """Say whether a file of this name holds rows, by its ending; what it is packed with aside."""
    return PurePosixPath(name.lower()).suffix in (*JSON_LINES, *CSV, ".parquet")


def rows_of(
    name: str,
    stream: IO[bytes],
    max_row_bytes: int,
    max_bytes: int,
    language: str = "",
    size_bytes: int = 0,
) -> Iterator[TableRow]:
    """Yield the rows of a file that isn't packed and no Parquet, within so many bytes.

    Together they are as large as what was read of it; a file without any has one that says so.

    Args:
        name: of the file.
        stream: its bytes.
        max_row_bytes: a longer row is left out.
        max_bytes: nothing more is read then.
        language: what texts of this place are in; empty: not known.
        size_bytes: of the file; 0: not known before it is read.
    """
    counted = CountedStream(stream)
    read = cast("IO[bytes]", counted)
    if PurePosixPath(name.lower()).suffix in CSV:
        rows = _of_csv(read, min(max_bytes, MAX_CSV_BYTES), language)
    else:
        rows = json_lines(read, max_row_bytes, max_bytes, language)
    return settled(rows, lambda: max(counted.bytes, size_bytes))


def settled(rows: Iterable[TableRow], seen: Callable[[], int]) -> Iterator[TableRow]:
    """Yield rows that are as large together as what was read, which the last one makes up for."""
    shares, last = Shares(seen), None
    try:
        for row in rows:
            if last is not None:
                yield last
            last = replace(row, size_bytes=shares.of(row.size_bytes))
    except Exception:
        if last is not None:
            yield last
        raise
    last = last or TableRow({}, 0, SkipReason.EMPTY, number=1)
    yield replace(last, size_bytes=last.size_bytes + shares.rest())


def row_apart(found: Mapping[str, Any] | SkipReason, field: str, number: int) -> TableRow:
    """Return as a row what a process of its own has read of one."""
    if isinstance(found, SkipReason):
        return TableRow({}, 0, found, number=number)
    if (text := found.get(field)) is None:
        columns = found.get(COLUMNS)
        detail = f"its fields: {columns}" if columns else ""
        return TableRow(found, 0, SkipReason.NO_FIELD, detail, number)
    return TableRow(found, len(str(text).encode("utf-8", "surrogatepass")), number=number)


def text_in(row: TableRow, field: str) -> str:
    """Return the text of a row; `field` may name one within another, as in `meta.text`.

    Raises:
        UnreadableError: it has none, or can't be read.
    """
    if row.reason is not None:
        raise UnreadableError(row.reason, row.size_bytes, row.detail)
    found = _value(row.fields, field)
    if not isinstance(found, str):
        raise UnreadableError(SkipReason.NO_FIELD, row.size_bytes, without_text(row.fields))
    if not found.strip():
        raise UnreadableError(SkipReason.EMPTY, row.size_bytes)
    if "\0" in found or not _is_unicode(found):
        raise UnreadableError(SkipReason.NOT_TEXT, row.size_bytes)
    return found


def without_text(fields: Mapping[str, Any]) -> str:
    """Return what a row has in place of the text that was asked for, and what to write."""
    return row_advice(fields) or described_fields(fields)


def described_fields(fields: Mapping[str, Any]) -> str:
    """Return which fields a row has, those within others too, for people."""
    names = list(_paths(fields))
    more = " ..." if len(names) > _NAMED_FIELDS else ""
    return f"its fields: {', '.join(names[:_NAMED_FIELDS])}{more}" if names else "it has no fields"


def json_lines(
    stream: IO[bytes], max_row_bytes: int, max_bytes: int = 1 << 62, language: str = ""
) -> Iterator[TableRow]:
    """Yield a row for each line, whatever ends it; a longer one isn't held in memory.

    Where more than `max_bytes` were read, the last row says so.

    language: what texts of this place are in; empty: not known
    """
    stream, legacy = with_plain_lines(stream), Legacy(language)
    number, read_bytes = 0, 0
    while line := stream.readline(max_row_bytes + 1):
        number += 1
        size = len(line)
        is_whole = line.endswith(b"\n") or size <= max_row_bytes
        if not is_whole:
            size += _rest_of_line(stream, max_bytes - read_bytes)
            yield TableRow({}, size, SkipReason.TOO_LARGE, number=number)
        else:
            yield _parsed(line, number, legacy)
        read_bytes += size
        if read_bytes >= max_bytes:
            yield TableRow({}, 0, SkipReason.OVER_BUDGET, number=number + 1)
            return


def _rest_of_line(stream: IO[bytes], most: int) -> int:
    size = 0
    while size < most and (rest := stream.readline(1 << 20)):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return size


def _parsed(line: bytes, number: int, legacy: Legacy) -> TableRow:
    if not line.strip():
        return TableRow({}, len(line), SkipReason.EMPTY, number=number)
    try:
        found: Any = json.loads(legacy.decoded(line).strip().removesuffix(","))
    except UnreadableError as error:
        return TableRow({}, len(line), error.reason, number=number)
    except (ValueError, RecursionError) as error:
        detail = f"line {number} isn't JSON: {error}"
        return TableRow({}, len(line), SkipReason.BROKEN, detail, number)
    if not isinstance(found, dict):
        detail = f"line {number} is no object of JSON"
        return TableRow({}, len(line), SkipReason.BROKEN, detail, number)
    return TableRow(cast("dict[str, Any]", found), len(line), number=number)


def json_list(data: bytes, field: str, language: str = "") -> list[TableRow] | None:
    """Return the rows of a list of objects; None where it is none, or none has the field."""
    try:
        found: Any = json.loads(decoded(data, language=language))
    except (ValueError, RecursionError, UnreadableError):
        return None
    if not isinstance(found, list):
        return None
    rows = [_listed(item, number) for number, item in enumerate(cast("list[Any]", found), 1)]
    rows = list(settled(rows, lambda: len(data)))
    return rows if any(isinstance(_value(row.fields, field), str) for row in rows) else None


def _listed(item: object, number: int) -> TableRow:
    if not isinstance(item, dict):
        return TableRow({}, 0, SkipReason.BROKEN, f"item {number} is no object of JSON", number)
    fields = cast("dict[str, Any]", item)
    return TableRow(fields, len(json.dumps(fields)), number=number)


def _of_csv(stream: IO[bytes], max_bytes: int, language: str) -> Iterator[TableRow]:
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        yield TableRow({}, len(data), SkipReason.TOO_LARGE)
        return
    try:
        text = decoded(data, language=language)
    except UnreadableError as error:
        yield TableRow({}, len(data), error.reason)
        return
    for record in records(text):
        reason = SkipReason.BROKEN if record.fault else None
        yield TableRow(record.cells, record.size_bytes, reason, record.fault, record.number)


def _value(fields: Mapping[str, Any], field: str) -> object:
    if field in fields:
        return fields[field]
    found: object = fields
    for name in field.split("."):
        if not isinstance(found, dict):
            return None
        found = cast("dict[str, object]", found).get(name)
    return found


def _paths(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            yield from (f"{name}.{key}" for key in inner)
        else:
            yield str(name)


def _is_unicode(text: str) -> bool:
    """Say whether a file can hold it: JSON can spell halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
