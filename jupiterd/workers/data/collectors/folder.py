"""Files below a folder; a cluster is a file's topmost folder, or the stem of a lone file.

Owns what belongs to such a source and how it is named.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.domain.data_sources import FolderSource
from jupiterd.errors import EmptySourceError
from jupiterd.path_text import path_of, path_text
from jupiterd.workers.data.collectors.collector import Found, Visit
from jupiterd.workers.data.collectors.files import (
    Bounds,
    SourceFile,
    Walk,
    documents_of,
    read_within,
)
from jupiterd.workers.data.skips import SkipReason


class Folder:
    """A folder of the machine that collects."""

    collector = "folder@3"

    def __init__(self, source: FolderSource) -> None:
        self._source = source
        self._root = path_of(source.path)
        self._shown_path = path_text(self._root)
        self.name = f"the folder {self._shown_path}"

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every file that the glob matches, but hidden ones and links that lead out."""
        if not self._root.is_dir():
            raise EmptySourceError(
                f"the data source {self._shown_path} is no folder on any machine that was asked"
            )

        def leave_out(name: str, reason: SkipReason) -> None:
            visit.skips.add(self._uri(name), reason)

        source = self._source
        wanted = WantedNames(source.glob, source.exclude)
        files = map(self._file, Walk(self._root, wanted, leave_out).names())
        bounds = Bounds(source.max_files, source.max_bytes, source.max_document_bytes, source.field)
        yield from documents_of(files, visit, bounds, self._source.license, "")

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield nothing: files are read again, and compared by their bytes."""
        return iter(())

    def _uri(self, name: str) -> str:
        return f"folder:{path_text(self._root.name)}/{path_text(name)}"

    def _file(self, name: str) -> SourceFile:
        path = PurePosixPath(path_text(name))
        cluster = path.parts[0] if len(path.parts) > 1 else path.stem
        read = partial(read_within, self._root / name, self._source.max_document_bytes)
        return SourceFile(cluster, self._uri(name), name, read, self._root / name)
