"""Counts refusals by kind, and logs the first of each kind and caller.

Owns the counts; bounds its memory and its log lines, however many callers there are. Doesn't know
why a call is refused.
"""

import logging
from collections import Counter

MAX_NAMED_CALLERS = 64
"""Most callers that the log names for one kind: a caller can create any number of keys, and the log
must stay readable."""

_log = logging.getLogger(__name__)


class Refusals:
    """How often this node refused each kind of request since it started."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._named: dict[str, set[str]] = {}

    def count(self, kind: str, caller: str, reason: str) -> bool:
        """Count one refusal; log the first of this kind and caller; return if it was logged."""
        self._counts[kind] += 1
        named = self._named.setdefault(kind, set())
        if caller in named or len(named) > MAX_NAMED_CALLERS:
            return False
        if len(named) == MAX_NAMED_CALLERS:
            caller, reason = "others", "more callers, which aren't named one by one"
        named.add(caller)
        _log.warning("refused", extra={"kind": kind, "caller": caller, "reason": reason})
        return True

    def to_plain(self) -> dict[str, int]:
        """Return the counts by kind, for the status."""
        return dict(sorted(self._counts.items()))
