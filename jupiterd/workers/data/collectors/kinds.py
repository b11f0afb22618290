"""Which collector reads which kind of data source.

Owns the choice. A new kind is a class in `cycle.domain.data_sources`, a file beside this one, and
its case here. Doesn't know how anything is read. Each collector is imported where it is chosen: its
libraries take long to load.
"""

from jupiterd.cycle.domain.data_sources import (
    DataSource,
    FeedSource,
    FolderSource,
    GitSource,
    HuggingFaceSource,
    JsonlSource,
    ParquetSource,
    PythonStdlibSource,
    WebSource,
)
from jupiterd.workers.data.collectors.collector import Collector

BY_FILES = frozenset({"hugging_face"})
"""Kinds of which a part is known by its number; of the others it is a source by itself."""


def open_collector(source: DataSource, part: tuple[int, int] | None = None) -> Collector:
    """Return the collector for a domain's data source; only its own libraries are imported.

    part: (number, of how many), where a part of the source is read
    """
    match source:
        case WebSource() | FeedSource():
            return _of_web(source)
        case JsonlSource() | ParquetSource() | HuggingFaceSource():
            return _of_tables(source, part)
        case PythonStdlibSource() | FolderSource() | GitSource():
            return _of_files(source)


def _of_web(source: WebSource | FeedSource) -> Collector:
    if isinstance(source, FeedSource):
        from jupiterd.workers.data.collectors.feed import Feeds

        return Feeds(source)
    from jupiterd.workers.data.collectors.web import CrawledSite

    return CrawledSite(source)


def _of_tables(
    source: JsonlSource | ParquetSource | HuggingFaceSource, part: tuple[int, int] | None
) -> Collector:
    if isinstance(source, JsonlSource):
        from jupiterd.workers.data.collectors.jsonl import Jsonl

        return Jsonl(source)
    if isinstance(source, ParquetSource):
        from jupiterd.workers.data.collectors.parquet import Parquet

        return Parquet(source)
    from jupiterd.workers.data.collectors.hugging_face import HuggingFace

    return HuggingFace(source, part)


def _of_files(source: PythonStdlibSource | FolderSource | GitSource) -> Collector:
    if isinstance(source, FolderSource):
        from jupiterd.workers.data.collectors.folder import Folder

        return Folder(source)
    if isinstance(source, GitSource):
        from jupiterd.workers.data.collectors.git import GitRepository

        return GitRepository(source)
    from jupiterd.workers.data.collectors.python_stdlib import PythonStdlib

    return PythonStdlib(source)
