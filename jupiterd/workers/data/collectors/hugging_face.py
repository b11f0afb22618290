"""A data set of Hugging Face, streamed: nothing is kept that isn't collected.

Owns what belongs to such a source and how its rows are named. The way to the library is in
`workers/data/hugging_face`; a process of its own goes it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.cycle.data_sources import HuggingFaceSource
from jupiterd.errors import SourceUnreachableError
from jupiterd.workers.data.collectors.collector import Found, Unchanged, Visit
from jupiterd.workers.data.collectors.tables import (
    PlacedRow,
    documents_of_rows,
    fields_of,
    limits_of,
)
from jupiterd.workers.data.hugging_face import commit_of
from jupiterd.workers.data.skips import SkipReason
from jupiterd.workers.data.table_rows import row_apart
from jupiterd.workers.data.tables_apart import rows_apart


class HuggingFace:
    """A data set at one commit."""

    collector = "hugging_face@2"

    def __init__(self, source: HuggingFaceSource) -> None:
        self._source = source
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
        yield from documents_of_rows(self._rows(commit), self._source, visit, commit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield the commit that was read."""
        yield self._state

    def _rows(self, commit: str) -> Iterator[PlacedRow]:
        source = self._source
        order = {
            "path": source.path, "subset": source.subset, "split": source.split,
            "revision": commit, "required": "",
        }  # fmt: skip
        found = rows_apart("hugging_face", order, fields_of(source), limits_of(source))
        for number, row in enumerate(found, 1):
            if row is SkipReason.TIMED_OUT:
                raise SourceUnreachableError(f"{source.path} sends nothing any more")
            yield (
                self._uri(f"{source.subset}/{source.split}/{number}"),
                row_apart(row, source.field, number),
            )

    def _uri(self, name: str) -> str:
        return f"huggingface:{self._source.path}#{name}"
