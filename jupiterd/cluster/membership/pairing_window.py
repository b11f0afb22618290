"""How long the pairing window stays open once somebody has opened it.

Owns the ten minutes, on the leader's own clock: a new leader counts anew. Doesn't open or close.
"""

OPEN_S = 600.0


class PairingWindow:
    """What one leader has seen of the window."""

    def __init__(self, open_s: float = OPEN_S) -> None:
        self._open_s = open_s
        self._edit = 0
        self._seen_at = 0.0

    def is_over(self, now: float, edit: int, *, is_open: bool) -> bool:
        """Say whether the window that setting number `edit` opened has been open long enough.

        Before the first setting it is open as long as the cluster has never run work.
        """
        if edit != self._edit:
            self._edit, self._seen_at = edit, now
        return is_open and edit > 0 and now - self._seen_at >= self._open_s

    def left_s(self, now: float, edit: int) -> float:
        """Return how long the window that setting number `edit` opened stays open, in seconds."""
        since_s = now - self._seen_at if edit == self._edit else 0.0
        return max(0.0, self._open_s - since_s)
