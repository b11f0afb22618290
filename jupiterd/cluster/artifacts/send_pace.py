"""How long to wait before more of an artifact is sent.

Owns the rules: no more in the long run than a rate that people set; and while ranks of a gang run
on this node, artifacts have the link for no more than a share of the time, for the gang's gradients
have to pass there too. The more is under way, the longer a part takes, and the longer the pause
after it: what is slow already gives way. Doesn't know links, or what is sent.
"""

from typing import Final

BURST_S: Final = 0.1
"""Whoever sent nothing may be so far ahead of the rate."""

PARTS_A_SECOND: Final = 8
"""At the rate that people set: whoever else waits for a part hears from us soon."""

LEAST_PART_BYTES: Final = 16 << 10

MAX_PAUSE_S: Final = 1.0
"""A link that was stuck for long isn't left alone for as long again."""


class SendPace:
    """One node's; every transfer that it sends goes by it."""

    def __init__(self, bytes_per_s: float, training_share: float) -> None:
        """A rate of 0 is none; the share is above 0, and 1 at most."""
        self._bytes_per_s = bytes_per_s
        self._training_share = training_share
        self._due_s = float("-inf")

    def part_bytes(self, most_bytes: int) -> int:
        """Return how much to send at once before waiting; all transfers share the rate."""
        if not self._bytes_per_s:
            return most_bytes
        return min(most_bytes, max(LEAST_PART_BYTES, int(self._bytes_per_s / PARTS_A_SECOND)))

    def pause_s(self, now_s: float, size_bytes: int, took_s: float, *, trains: bool) -> float:
        """Return how long to wait after a part of that size, which took so long to send."""
        rate_s = share_s = 0.0
        if self._bytes_per_s:
            self._due_s = max(self._due_s, now_s - BURST_S) + size_bytes / self._bytes_per_s
            rate_s = self._due_s - now_s
        if trains:
            share_s = min(MAX_PAUSE_S, took_s * (1 / self._training_share - 1))
        return max(0.0, rate_s, share_s)
