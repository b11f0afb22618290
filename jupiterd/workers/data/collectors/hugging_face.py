"""A data set of Hugging Face, streamed: nothing is kept that isn't collected.

Owns what belongs to such a source and how its rows are named. The way to the library is in
`workers/data/hugging_face`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.cycle.data_sources import HuggingFaceSource
from jupiterd.errors import SourceUnreachableError
from jupiterd.workers.data.collectors.collector import Found, Unchanged, Visit
from jupiterd.workers.data.collectors.tables import Row, documents_of_rows
from jupiterd.workers.data.hugging_face import commit_of, rows
from jupiterd.workers.data.skips import SkipReason


class HuggingFace:
    """A data set at one commit."""

    collector = "hugging_face@1"

    def __init__(self, source: HuggingFaceSource) -> None:
        self._source = source
        self.name = f"the data set {source.path}"
        self._state: dict[str, str] = {}

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every row that has a text; nothing is streamed where the commit is the same."""
        before = next(visit.previous.state(), {})
        source = self._source
        try:
            commit = commit_of(source.path, source.revision)
        except SourceUnreachableError:
            if not visit.previous.count:
                raise
            visit.skips.add(self._uri(""), SkipReason.UNREACHABLE)
            commit = str(before.get("commit", ""))
        self._state = {"commit": commit}
        if visit.previous.count and commit == before.get("commit"):
            yield from map(Unchanged, visit.previous.uris())
            return
        yield from documents_of_rows(self._rows(commit), source, visit, commit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield the commit that was read."""
        yield self._state

    def _rows(self, commit: str) -> Iterator[Row]:
        source = self._source
        found = rows(source.path, source.subset, source.split, commit)
        for number, row in enumerate(found, 1):
            yield self._uri(f"{source.subset}/{source.split}/{number}"), row

    def _uri(self, name: str) -> str:
        return f"huggingface:{self._source.path}#{name}"
