"""How many tokens were trained on since this daemon began to look, as a counter that never falls.

Pure. Owns the count. A run counts from where its leader was first heard to train it: what a ledger
brings that is caught up with was trained before, or while this daemon wasn't there.
"""

from collections.abc import Mapping


class TrainedTokens:
    """The growth of each run since it was first seen at work."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._grown: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Of all runs."""
        return sum(self._grown.values())

    def note(self, live: Mapping[str, int], recorded: Mapping[str, int]) -> None:
        """Take note of each run's tokens: as leaders tell just now, and as the ledger says."""
        for run, tokens in live.items():
            self._first.setdefault(run, tokens)
        for run, first in self._first.items():
            newest = max(live.get(run, 0), recorded.get(run, 0))
            self._grown[run] = max(self._grown.get(run, 0), newest - first)
