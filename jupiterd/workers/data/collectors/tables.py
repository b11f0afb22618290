"""Rows of tables as documents, whatever the table is kept in.

Owns which field means what. Doesn't know files.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from blake3 import blake3

from jupiterd.cycle.base.licenses import LICENSE_PATTERN
from jupiterd.cycle.domain.data_sources import HuggingFaceSource, JsonlSource, ParquetSource
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.text_rules.document_kind import document_kind
from jupiterd.cycle.text_rules.text_form import LineMeaning, text_form
from jupiterd.workers.data.collectors.collector import CollectedDocument, Found, Unchanged, Visit
from jupiterd.workers.data.extractors.layouts import layout_of_kind
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.tables.isolated_tables import TableLimits
from jupiterd.workers.data.tables.table_rows import TableRow, text_in

TableSource = HuggingFaceSource | JsonlSource | ParquetSource

PlacedRow = tuple[str, TableRow]
"""Where it lies, and it."""


def fields_of(source: TableSource) -> tuple[str, ...]:
    """Return the fields of a row that mean something; the text comes first."""
    others = (source.license_field, source.cluster_field, source.uri_field)
    return (source.field, *(name for name in others if name))


def limits_of(source: TableSource) -> TableLimits:
    """Return what reading it may cost."""
    return TableLimits(max_chars=source.max_document_bytes, max_chars_in_all=source.max_bytes)


def documents_of_rows(
    rows: Iterator[PlacedRow], source: TableSource, visit: Visit, revision: str = ""
) -> Iterator[Found]:
    """Yield a document for each row that has a text, within the bounds; record the others."""
    read_bytes, number = 0, 0
    for number, (place, row) in enumerate(rows, 1):
        visit.progress(number, 0, "rows")
        if number > source.max_documents:
            visit.skips.add(place, SkipReason.TOO_MANY)
            break
        if read_bytes > source.max_bytes:
            visit.skips.add(place, SkipReason.OVER_BUDGET)
            break
        try:
            document = _document(place, number, row, source, revision)
        except UnreadableError as error:
            visit.skips.add(place, error.reason, error.size_bytes, error.detail)
            continue
        visit.skips.use(row.size_bytes)
        read_bytes += len(document.text)
        is_known = visit.previous.has(document.uri, document.source_hash, "")
        yield Unchanged(document.uri) if is_known else in_one_form(document, visit.language)
    visit.progress(number, number, "rows")


def in_one_form(document: CollectedDocument, language: str) -> CollectedDocument:
    """Return a row's document with its lines as rules count them; of code they stay."""
    found = document_kind(document.name or "", document.text)
    layout = LineMeaning.VERBATIM if is_code(language) else layout_of_kind(found)
    return replace(document, text=text_form(document.text, layout))


def _document(
    place: str,
    number: int,
    row: TableRow,
    source: TableSource,
    revision: str,
) -> CollectedDocument:
    text = text_in(row, source.field)
    if len(text) > source.max_document_bytes:
        raise UnreadableError(SkipReason.TOO_LARGE, row.size_bytes)
    page = _field_text(row.fields, source.uri_field)
    return CollectedDocument(
        uri=f"{page}#{number}" if page else place,  # several rows may be of one page
        cluster_id=_field_text(row.fields, source.cluster_field) or page or place,
        text=text,
        source_hash=blake3(text.encode("utf-8", "surrogatepass")).hexdigest(),
        license=_license(row.fields, source),
        revision=revision,
        name="",
    )


def _license(row: Mapping[str, Any], source: TableSource) -> str:
    stated = _field_text(row, source.license_field)
    return stated if re.fullmatch(LICENSE_PATTERN, stated) else source.license


def _field_text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name) if name else None
    return value[:2048] if isinstance(value, str) else ""
