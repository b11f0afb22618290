"""What a collector left out, and why: counted by reason, with examples to look at.

Owns the reasons and their file. Doesn't know sources.
"""

import json
from collections import Counter
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from jupiterd.cycle.phase_summary import SILENT_COUNT
from jupiterd.workers.data.sample_file import LineWriter

FILE_NAME = "skipped.jsonl.zst"
"""Beside the samples of a source: {"reason", "uri"} on each line."""

EXAMPLES = 200
"""So many of each reason are written down; all are counted."""

SILENT_HOSTS = 8
"""No more of them are named in the counts."""

MAX_URI_CHARS = 2048


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
    """Not UTF-8, or with zero bytes."""
    UNKNOWN_FORM = "unknown_form"
    """A kind of content that nothing here reads, or packed in a way that isn't known."""
    BROKEN = "broken"
    """Its parser couldn't make anything of it."""
    ENCRYPTED = "encrypted"
    TIMED_OUT = "timed_out"
    """Fetching it, or taking the text out of it, took too long."""
    OUT_OF_MEMORY = "out_of_memory"
    """Its parser needed more memory than it is given."""
    CRASHED = "crashed"
    """Its parser's process died."""
    GAVE_UP = "gave_up"
    """This worker was ended several times while it was busy with it."""
    LEADS_OUT = "leads_out"
    """A link that leads out of the folder."""
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

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class SkipLog:
    """Counts what is left out and writes examples down; a context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = LineWriter(folder / FILE_NAME)
        self.counts: Counter[SkipReason] = Counter()
        self._silent: Counter[str] = Counter()
        """Host -> what wasn't asked for, because it had stopped answering."""

    def add(self, uri: str, reason: SkipReason) -> None:
        """Record one document."""
        self.counts[reason] += 1
        if reason is SkipReason.NOT_ASKED:
            self._silent[urlsplit(uri).netloc] += 1
        if self.counts[reason] <= EXAMPLES:
            self._writer.write(
                json.dumps({"reason": reason, "uri": uri[:MAX_URI_CHARS]}, sort_keys=True)
            )

    def totals(self) -> dict[str, float]:
        """Return all of them together as `skipped`, each reason as `skipped.REASON`.

        Hosts that had stopped answering are named, too.
        """
        by_reason = {f"skipped.{reason}": float(n) for reason, n in sorted(self.counts.items())}
        silent = sorted(self._silent.most_common(SILENT_HOSTS))
        by_host = {f"{SILENT_COUNT}{host}": float(number) for host, number in silent}
        return {"skipped": float(self.counts.total()), **by_reason, **by_host}

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
