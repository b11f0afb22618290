"""A data set of Hugging Face, streamed: nothing is kept that isn't collected.

Owns what belongs to such a source, or to one part of it, and how its rows are named. The way to the
library is in `workers/data/hugging_face`; a process of its own goes it.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from jupiterd.cycle.domain.data_sources import HuggingFaceSource
from jupiterd.cycle.domain.source_parts import share_of_files
from jupiterd.errors import SourceUnreachableError
from jupiterd.workers.data.collectors.collector import Found, Unchanged, Visit
from jupiterd.workers.data.collectors.tables import (
    PlacedRow,
    documents_of_rows,
    fields_of,
    limits_of,
)
from jupiterd.workers.data.skips import SkipReason
from jupiterd.workers.data.tables.hugging_face import FILES, commit_of
from jupiterd.workers.data.tables.isolated_tables import rows_apart
from jupiterd.workers.data.tables.table_rows import row_apart

_Row = Mapping[str, Any] | SkipReason


class HuggingFace:
    """A data set at one commit, or every n-th file of it."""

    collector = "hugging_face@2"

    def __init__(self, source: HuggingFaceSource, part: tuple[int, int] | None = None) -> None:
        """Take the source; part: (number, of how many), where another one reads other files."""
        self._source = source
        self._part = part
        self.name = f"the data set {source.path}"
        self._state: dict[str, str] = {}

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every row that has a text; nothing is streamed where the commit is the same."""
        before = str(next(visit.previous.state(), {}).get("commit", ""))
        commit = commit_of(self._source.path, self._source.revision)
        self._state = {"commit": commit}
        if visit.previous.count and commit == before:
            yield from map(Unchanged, visit.previous.uris())
            return
        rows, own = self._opened(commit)
        yield from documents_of_rows(self._placed(rows), own, visit, commit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield the commit that was read."""
        yield self._state

    def _opened(self, commit: str) -> tuple[Iterator[_Row], HuggingFaceSource]:
        """Return the rows, and the source with the bounds that hold for them."""
        source = self._source
        order = {
            "path": source.path, "subset": source.subset, "split": source.split,
            "revision": commit, "required": "", "part": list(self._part or ()),
        }  # fmt: skip
        fields = (*fields_of(source), FILES)
        rows = rows_apart("hugging_face", order, fields, limits_of(source))
        if self._part is None:
            return rows, source
        first = next(rows)
        if isinstance(first, SkipReason):
            return chain([first], rows), source
        files = int(first[FILES])
        bounds = {"max_documents": source.max_documents, "max_bytes": source.max_bytes}
        own = {name: share_of_files(most, files, *self._part) for name, most in bounds.items()}
        return rows, source.model_copy(update=own)

    def _placed(self, rows: Iterator[_Row]) -> Iterator[PlacedRow]:
        source = self._source
        before = "" if self._part is None else f"{self._part[0]}-"
        for number, row in enumerate(rows, 1):
            if row is SkipReason.TIMED_OUT:
                raise SourceUnreachableError(f"{source.path} sends nothing any more")
            yield (
                self._uri(f"{source.subset}/{source.split}/{before}{number}"),
                row_apart(row, source.field, number),
            )

    def _uri(self, name: str) -> str:
        return f"huggingface:{self._source.path}#{name}"
