"""Reading a part of one source: all that there is time for, evenly spread over what is there.

Owns which documents are read, and when it is enough. Doesn't judge any (`survey_verdicts`), nor
know a kind of source: collectors read as they do in a cycle.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Self

from blake3 import blake3

from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.cycle.holdout.clusters import Path as ClusterPath
from jupiterd.cycle.holdout.clusters import cluster_path
from jupiterd.workers.data.collect.collect_source import nothing_found
from jupiterd.workers.data.collect.previous_round import PreviousRound
from jupiterd.workers.data.collectors.collector import CollectedDocument, Collector, Visit
from jupiterd.workers.data.collectors.files import SourceFile
from jupiterd.workers.data.extract.decompression import unpacked_name
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.skips import SkipLog, SkipReason
from jupiterd.workers.progress import Progress, silent

MOST_READ = 400
"""Of one source: so many tell a share to about five in a hundred; more would only take time."""

LEAST_READ = 40

GRACE_S = 8.0
"""So much later than it was to end a look ends, however little it has read or judged."""

LATE_BYTES = 1 << 18
"""A file that is larger isn't begun any more once time is up, though too few are read yet: forty
books may take minutes."""

MOST_READ_BYTES = 64 << 20
"""Of text that is held at a time."""


@dataclass(frozen=True)
class Unread:
    """A document that there is and that wasn't read."""

    ending: str
    path: ClusterPath

    @classmethod
    def of(cls, found: SourceFile | CollectedDocument) -> Self:
        """Return what is known of it without looking at its text."""
        return cls(ending_of(found.name or found.uri), cluster_path(found.uri, found.cluster_id))


@dataclass(frozen=True)
class Looked:
    """What was seen of one source."""

    source: DataSource
    found: int = 0
    read: list[CollectedDocument] = field(default_factory=list[CollectedDocument])
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """Reason -> what couldn't be read."""
    unread: list[Unread] = field(default_factory=list[Unread])
    is_at_least: bool = False
    why_not: str = ""
    is_empty: bool = False
    slow: Sequence[str] = ()
    """The first that took too long, as the source calls them."""


def ending_of(name: str) -> str:
    """Return by what a file's text is taken to be like that of others."""
    return PurePosixPath(name).suffix.lower()


def page_of(name: str) -> str:
    """Return what all formats of one page are called.

    A number is no format: part.00001 and part.00002 are different texts.
    """
    unpacked = unpacked_name(name)
    ending = PurePosixPath(unpacked).suffix
    return unpacked if ending[1:].isdecimal() else unpacked.removesuffix(ending)


class SourceSample:
    """One look at one source; to be closed."""

    def __init__(
        self,
        source: DataSource,
        extractor: Extractor,
        scratch: Path,
        until_s: float,
        language: str = "",
        on_progress: Progress = silent,
    ) -> None:
        self.source = source
        self._language = language
        self._on_progress = on_progress
        self._scratch = scratch
        self._until_s = until_s
        self._extractor = extractor
        self._files: list[SourceFile] = []
        self._begun = 0
        self._passed: list[SourceFile] = []
        """Too large for as late as it was."""
        scratch.mkdir(parents=True)
        self._previous = PreviousRound(scratch / "previous.db")

    def close(self) -> None:
        """Let go of what was opened."""
        self._previous.close()

    def look(self, collector: Collector) -> Looked:
        """Read what there is time for.

        Raises:
            JupiterError: the source isn't there, or there is no way to it.
        """
        with SkipLog(self._scratch / "skipped") as skips:
            visit = Visit(
                self._scratch, self._previous, self._extractor, skips, silent, self._pause, _now,
                language=self._language, choose=self._chosen,
            )  # fmt: skip
            read, is_whole = self._read(collector, visit)
            skipped = {str(reason): number for reason, number in skips.counts.items()}
            if not read and self._begun == len(self._files):
                message = nothing_found(collector.name, skips).message
                is_empty = not skips.counts[SkipReason.TIMED_OUT]
                return Looked(self.source, why_not=message, is_empty=is_empty)
            slow = skips.named(SkipReason.TIMED_OUT)
        late = [*self._passed, *self._files[self._begun + len(self._passed) :]]
        unread = [Unread.of(file) for file in late]
        found = len(self._files) or len(read) + sum(skipped.values())
        is_at_least = not self._files and not is_whole
        return Looked(self.source, found, read, skipped, unread, is_at_least, slow=slow)

    def _read(self, collector: Collector, visit: Visit) -> tuple[list[CollectedDocument], bool]:
        """Return the documents, and whether there are no others."""
        read: list[CollectedDocument] = []
        size = 0
        with closing(_iterated(collector, visit)) as documents:
            for document in islice(documents, MOST_READ):
                read.append(document)
                self._on_progress(len(read), len(self._files), "read")
                size += len(document.text)
                if size > MOST_READ_BYTES or self._is_over(len(read)):
                    return read, False
        return read, len(read) < MOST_READ

    def _chosen(self, files: Iterator[SourceFile]) -> Iterator[SourceFile]:
        """Take the files in an order that has nothing to do with their names, until time is up.

        One page in two formats (`add.txt`, `add.html`) is read twice or not at all: of a few files
        drawn one by one hardly any two would be copies, however many there are.
        """
        self._files = sorted(files, key=lambda file: (_drawn(file.uri), file.uri))
        for file in self._files:
            if self._is_over(self._begun):
                return
            if self._is_late() and _size_bytes(file) > LATE_BYTES:
                self._passed.append(file)
                continue
            self._begun += 1
            yield file

    def _is_over(self, read: int) -> bool:
        """Say whether time is up; some are read however late it is."""
        is_enough = read >= LEAST_READ or time.monotonic() > self._until_s + GRACE_S
        return is_enough and self._is_late()

    def _is_late(self) -> bool:
        return time.monotonic() > self._until_s

    def _pause(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self._until_s - time.monotonic())))  # noqa: TID251


def _iterated(collector: Collector, visit: Visit) -> Generator[CollectedDocument]:
    for found in collector.documents(visit):
        if isinstance(found, CollectedDocument):
            yield found


def _size_bytes(file: SourceFile) -> int:
    """Return how large a file is; 0 where that isn't known before it's read."""
    try:
        return file.path.stat().st_size if file.path is not None else 0
    except OSError:
        return 0


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _drawn(uri: str) -> bytes:
    """Return what decides when a file is read: the same for all formats of one page."""
    return blake3(page_of(uri).encode()).digest(8)
