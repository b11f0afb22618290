"""What a collector is, what it is given, and what it finds.

Owns these forms. Doesn't know any kind of source, nor what becomes of a document.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jupiterd.workers.data.collect.previous_round import PreviousRound
from jupiterd.workers.data.collect.purged_sources import PurgedAddresses
from jupiterd.workers.data.extract.extraction import Extracted
from jupiterd.workers.data.skips import SkipLog
from jupiterd.workers.progress import Progress

UNREACHABLE_HINT = "check the address, and this machine's way to it"


@dataclass(frozen=True)
class CollectedDocument:
    """A text that is new, or isn't what it was in the round before."""

    uri: str
    """Where it comes from, without naming anything of this machine; unique in its source."""
    cluster_id: str
    """What it must stay together with in a split."""
    text: str
    source_hash: str
    license: str
    extractor: str = ""
    revision: str = ""
    """Which state of the source it is of."""
    robots_ok: bool | None = None
    fetched_at: str = ""
    """When it was fetched; empty: the time that the whole item goes by."""
    name: str | None = None
    """What tells its kind; None: `uri`. Empty: its content alone does, as for rows of a table."""


@dataclass(frozen=True)
class Unchanged:
    """A document that is what it was in the round before, whose sample is taken over."""

    uri: str


Found = CollectedDocument | Unchanged


class TextExtraction(Protocol):
    """Takes text out of documents."""

    @property
    def read_ahead(self) -> int:
        """Return how many documents are worth beginning before they are wanted."""
        ...

    def begin(self, form: str, data: bytes, name: str) -> None:
        """Begin with a document that `read` will be asked for."""
        ...

    def read(
        self, form: str, data: bytes, url: str = "", charset: str = "", name: str = ""
    ) -> Extracted:
        """Return what a document says; raises UnreadableError where it can't be used."""
        ...


@dataclass(frozen=True)
class Visit:
    """What a collector is given for one run."""

    scratch: Path
    """A folder that outlives this process, should it be killed: the next try finds it again."""
    previous: PreviousRound
    """What the round before found."""
    extraction: TextExtraction
    skips: SkipLog
    progress: Progress
    pause: Callable[[float], None]
    """Waits for so many seconds; raises WorkStoppedError where this worker is to stop."""
    now: Callable[[], str]
    """The time, in ISO 8601."""
    purged: PurgedAddresses = field(default_factory=PurgedAddresses)
    """What isn't asked for any more."""
    language: str = ""
    """Of the domain, such as `es` or `code:python`."""
    choose: Callable[[Iterator[Any]], Iterator[Any]] = iter
    """Which of a source's files are read, and in which order: all, as they come."""


class Collector(Protocol):
    """A kind of source, open for reading."""

    name: str
    """What people know it by, on this machine."""
    collector: str
    """Name@version of the code that reads it; another version reads everything anew."""

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every document in an order that is the same each time; record what is left out.

        Raises:
            EmptySourceError: the source isn't there.
            SourceUnreachableError: there is no way to it just now.
        """
        ...

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield what the next round needs to fetch only what has changed; after `documents`."""
        ...
