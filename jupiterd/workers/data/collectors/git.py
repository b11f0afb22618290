"""The files of a git repository at one commit; a cluster is the repository, or a folder of it.

Owns what belongs to such a source and how it is named. A repository whose branch or tag is where it
was in the round before isn't fetched again.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.domain.data_sources import GitSource
from jupiterd.path_text import path_text
from jupiterd.workers.data.collectors.collector import Found, Unchanged, Visit
from jupiterd.workers.data.collectors.files import (
    Bounds,
    SourceFile,
    documents_of,
)
from jupiterd.workers.data.crawl.git_program import Blob, BlobReader, Repository
from jupiterd.workers.data.skips import SkipReason, UnreadableError

_WHOLE_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class GitRepository:
    """A repository, cloned without its history."""

    collector = "git@2"

    def __init__(self, source: GitSource) -> None:
        self._source = source
        self.name = f"the repository {source.url}"
        self._state: dict[str, str] = {}

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every file of the commit that the glob matches, but hidden ones."""
        if visit.purged.leaves_out(self._uri(""), visit.skips):
            return  # the whole repository
        before = next(visit.previous.state(), {})
        source = self._source
        repository = Repository(
            visit.scratch / "repository.git",
            source.url,
            source.max_bytes,
            source.timeout_s,
            source.allow_private_addresses,
        )
        newest = self._newest(repository)
        if before.get("newest") == newest:
            self._state = dict(before)
            yield from map(Unchanged, visit.previous.uris())
            return
        repository.fetch(newest)
        commit = repository.commit_of(newest)
        self._state = {"newest": newest, "commit": commit}
        yield from self._files(repository, commit, visit)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield the commit that was read."""
        yield self._state

    def _newest(self, repository: Repository) -> str:
        if _WHOLE_COMMIT.fullmatch(self._source.revision):
            return self._source.revision
        return repository.newest(self._source.revision)

    def _files(self, repository: Repository, commit: str, visit: Visit) -> Iterator[Found]:
        source = self._source
        wanted = WantedNames(source.glob, source.exclude)
        with repository.reader() as reader:
            files = (
                self._file(blob, reader)
                for blob in repository.blobs(commit)
                if wanted.has(blob.name) and not _is_hidden(blob.name)
            )
            bounds = Bounds(source.max_files, source.max_bytes, source.max_document_bytes)
            yield from documents_of(files, visit, bounds, source.license, commit)

    def _file(self, blob: Blob, reader: BlobReader) -> SourceFile:
        name = path_text(blob.name)
        folders = PurePosixPath(name).parts[:-1][: self._source.cluster_depth]
        cluster = "/".join([self._source.url, *folders])
        return SourceFile(cluster, self._uri(name), name, partial(self._read, blob, reader))

    def _read(self, blob: Blob, reader: BlobReader) -> bytes:
        if blob.size_bytes > self._source.max_document_bytes:
            raise UnreadableError(SkipReason.TOO_LARGE, blob.size_bytes)
        return reader.read(blob.id)

    def _uri(self, name: str) -> str:
        """Return a name that is no address of the web: what lies there is a repository."""
        return f"git+{self._source.url}#{name}"


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or "/." in name
