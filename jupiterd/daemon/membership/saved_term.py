"""The highest term that this node has acted in, on disk before anything is sent in it.

Owns why it couldn't be written. Doesn't know when a term changes (`cluster.membership.election`).
"""

import logging

from jupiterd.errors import DiskFullError, StateDirError
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)


class SavedTerm:
    """One term, in the file of the ledger."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        self.trouble = ""
        """Why it can't be written; empty where it can."""

    def load(self) -> int:
        """Return the term on disk, 0 where there is none."""
        return int(self._file.get("term") or 0)

    def save(self, term: int) -> bool:
        """Say whether the term is on disk; where it isn't, `trouble` says why."""
        try:
            self._file.set("term", str(term))
        except (DiskFullError, StateDirError) as error:
            if not self.trouble:
                log.warning("term_not_saved", extra={"term": term, "reason": error.message})
            self.trouble = error.message
            return False
        self.trouble = ""
        return True
