"""What was refused: counted by kind, and logged once for each caller.

Owns the counts and their memory, which stays small whoever calls and however often. Doesn't know
why anything is refused.
"""

import logging
from collections import Counter

MAX_NAMED_CALLERS = 64
"""Callers that a kind names in the log; keys cost nothing, and a log is to stay readable."""

_log = logging.getLogger(__name__)


class Refusals:
    """How often this node has refused what, since it was started."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._named: dict[str, set[str]] = {}

    def count(self, kind: str, caller: str, reason: str) -> bool:
        """Count one refusal; log the first of this kind and caller, and say whether it is that."""
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
