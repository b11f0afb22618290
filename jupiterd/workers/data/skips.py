"""The items that a collector skipped, counted by reason, with examples.

Owns the reasons and their file. Items used plus items skipped are all items seen. Doesn't know
sources.
"""

import json
from collections import Counter, defaultdict
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from jupiterd.cycle.rounds.phase_summary import OTHER_FILES_COUNT, SILENT_COUNT, first_skipped_count
from jupiterd.workers.samples.sample_file import LineWriter

FILE_NAME = "skipped.jsonl.zst"
"""Lies beside the samples of a source; each line is {"reason", "uri"}, some with "detail"."""

EXAMPLES = 200
"""So many of each reason are written down; all are counted."""

SILENT_HOSTS = 8
"""No more of them are named in the counts."""

MOST_NAMED = 3
"""Of each reason so many are held by name."""

MAX_URI_CHARS = 2048
MAX_NAMED_CHARS = 120
"""Of the first of each reason, in the counts."""


class SkipReason(StrEnum):
    """Why a document was left out."""

    TOO_LARGE = "too_large"
    """More bytes than max_document_bytes, packed or unpacked."""
    OVER_BUDGET = "over_budget"
    """The source's max_bytes were read before it came to this one."""
    TOO_MANY = "too_many"
    """Beyond the greatest number of files, pages, entries or rows."""
    EMPTY = "empty"
    """No text in it."""
    NOT_TEXT = "not_text"
    """In no encoding of text; of a row: its text has halves of characters."""
    NO_FIELD = "no_field"
    """A row, or a whole table, without text in the field that was asked for."""
    NO_ANSWER = "no_answer"
    """A row of messages in which nobody answers."""
    NEEDS_EXTRA = "needs_extra"
    """The package that reads it isn't installed."""
    UNKNOWN_FORM = "unknown_form"
    """A kind of content that nothing here reads, or packed in a way that isn't known."""
    BROKEN = "broken"
    """Its parser couldn't make anything of it."""
    ENCRYPTED = "encrypted"
    TIMED_OUT = "timed_out"
    """Fetching it, taking the text out of it, or cleaning its markup took too long."""
    OUT_OF_MEMORY = "out_of_memory"
    """Its parser needed more memory than it is given."""
    CRASHED = "crashed"
    """Its parser's process died."""
    GAVE_UP = "gave_up"
    """This worker was ended several times while it was busy with it."""
    LEADS_OUT = "leads_out"
    """A link that leads out of the folder."""
    NO_FILE = "no_file"
    """A pipe, a socket or a device, or a link that leads nowhere: nothing is read of it."""
    VANISHED = "vanished"
    """It was there when the source was listed, and isn't any more."""
    UNREADABLE = "unreadable"
    """The disk or its permissions forbid it."""
    ROBOTS = "robots"
    """robots.txt, or the page itself, asks not to."""
    PRIVATE_ADDRESS = "private_address"
    """It lies on this machine or its local network, and the source doesn't allow that."""
    OUT_OF_BOUNDS = "out_of_bounds"
    """A redirect leads to where the source doesn't reach."""
    REFUSED = "refused"
    """The server answered with a status other than success."""
    UNREACHABLE = "unreachable"
    """The server didn't answer, or broke off."""
    NOT_ASKED = "not_asked"
    """Its server had left several requests running without an answer."""
    LICENSE = "license"
    """The domain's license_policy doesn't permit it."""
    PURGED = "purged"
    """People have purged its address."""


class UnreadableError(Exception):
    """A document can't be used; the collector leaves it out and goes on."""

    def __init__(self, reason: SkipReason, size_bytes: int = 0, detail: str = "") -> None:
        """Say why.

        Args:
            reason: what is counted.
            size_bytes: how large it is, where that is known here and not elsewhere.
            detail: what else people may want to know, in a few words.
        """
        super().__init__(str(reason))
        self.reason = reason
        self.size_bytes = size_bytes
        self.detail = detail


class SkipCounts:
    """Counts what a reader has seen: what is used, and what is left out for which reason."""

    def __init__(self) -> None:
        self.counts: Counter[SkipReason] = Counter()
        self.firsts: dict[SkipReason, str] = {}
        """Reason -> the first that was left out for it."""
        self._uris: defaultdict[SkipReason, list[str]] = defaultdict(list)
        self.details: dict[SkipReason, str] = {}
        """Reason -> what else was told of the first of which anything was."""
        self.used_bytes = 0
        self.skipped_bytes = 0
        self.other_files = 0
        """Files that are no documents: images, style sheets and the like."""
        self._silent: Counter[str] = Counter()
        """Host -> what wasn't asked for, because it had stopped answering."""

    @property
    def seen_bytes(self) -> int:
        """Return the bytes of everything that was looked at."""
        return self.used_bytes + self.skipped_bytes

    def use(self, size_bytes: int) -> None:
        """Record what could be read of one document, in bytes as it lies at its source."""
        self.used_bytes += size_bytes

    def add(self, uri: str, reason: SkipReason, size_bytes: int = 0, detail: str = "") -> None:
        """Record one document, or row, that is left out."""
        self.counts[reason] += 1
        self.skipped_bytes += size_bytes
        self.firsts.setdefault(reason, uri)
        if len(self._uris[reason]) < MOST_NAMED:
            self._uris[reason].append(uri)
        if detail:
            self.details.setdefault(reason, detail)
        if reason is SkipReason.NOT_ASKED:
            self._silent[urlsplit(uri).netloc] += 1

    def lose(self, size_bytes: int) -> None:
        """Record bytes of what is left out already."""
        self.skipped_bytes += size_bytes

    def named(self, reason: SkipReason) -> tuple[str, ...]:
        """Return the first that were left out for a reason."""
        return tuple(self._uris[reason])

    def add_other(self, size_bytes: int = 0) -> None:
        """Record a file that is no document; nobody misses its text."""
        self.other_files += 1
        self.skipped_bytes += size_bytes

    def _named(self, reason: SkipReason, uri: str) -> str:
        """Return the first of a reason, and of a row without text what it has in its place."""
        detail = self.details.get(reason, "") if reason is SkipReason.NO_FIELD else ""
        return uri[:MAX_NAMED_CHARS] + (f" ({detail[:MAX_NAMED_CHARS]})" if detail else "")

    def totals(self) -> dict[str, float]:
        """Return all of them together as `skipped`, each reason as `skipped.REASON`.

        The first of each reason is named, and so are hosts that had stopped answering.
        """
        by_reason = {f"skipped.{reason}": float(n) for reason, n in sorted(self.counts.items())}
        silent = sorted(self._silent.most_common(SILENT_HOSTS))
        by_host = {f"{SILENT_COUNT}{host}": float(number) for host, number in silent}
        firsts = {
            first_skipped_count(reason, self._named(reason, uri)): 1.0
            for reason, uri in sorted(self.firsts.items())
        }
        seen = {"used_bytes": float(self.used_bytes), "skipped_bytes": float(self.skipped_bytes)}
        others = {OTHER_FILES_COUNT: float(self.other_files)} if self.other_files else {}
        skipped = {"skipped": float(self.counts.total()), **by_reason, **firsts, **by_host}
        return {**skipped, **others, **seen}


class SkipLog(SkipCounts):
    """Writes examples down, too; a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = LineWriter(folder / FILE_NAME)

    def add(self, uri: str, reason: SkipReason, size_bytes: int = 0, detail: str = "") -> None:
        """Record one document."""
        super().add(uri, reason, size_bytes, detail)
        if self.counts[reason] <= EXAMPLES:
            record = {"reason": reason, "uri": uri[:MAX_URI_CHARS]}
            if detail:
                record["detail"] = detail[:MAX_URI_CHARS]
            self._writer.write(json.dumps(record, sort_keys=True))

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)
