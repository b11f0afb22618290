"""The purged addresses: what lies there is neither asked for nor read.

Owns the look at each address, and how often one was left out. What was purged by its source's name
isn't collected at all (`empty_source`); what was made of a purged text is found later (`unite`).
"""

from collections import Counter
from collections.abc import Iterable

from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT
from jupiterd.cycle.data.purge import purged_at
from jupiterd.workers.data.skips import SkipLog, SkipReason


class PurgedAddresses:
    """Says of each address whether it is left out."""

    def __init__(self, purged: Iterable[str] = ()) -> None:
        self._purged = tuple(sorted(purged))
        self._left_out: Counter[str] = Counter()

    def has(self, uri: str) -> bool:
        """Say whether what lies there was purged."""
        return bool(purged_at(uri, self._purged))

    def leaves_out(self, uri: str, skips: SkipLog) -> bool:
        """Say the same of a document, and record where it is left out."""
        source = purged_at(uri, self._purged)
        if source:
            self._left_out[source] += 1
            skips.add(uri, SkipReason.PURGED)
        return bool(source)

    def counts(self) -> dict[str, float]:
        """Return how many were left out for each purge that met any."""
        return {f"{LEFT_OUT_COUNT}{source}": n for source, n in sorted(self._left_out.items())}
