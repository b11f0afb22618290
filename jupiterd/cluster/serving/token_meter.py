"""How many tokens per second are written, over the last seconds.

Owns the sum over a window, and how many tokens a piece of an answer has. Doesn't know the time: it
is handed in. An engine sends an event for each token, and says in an answer that isn't streamed how
many it wrote.
"""

import re
from collections import deque
from typing import Final

WINDOW_S: Final = 5.0

_EVENT: Final = b"data: {"
_USAGE: Final = re.compile(rb'"completion_tokens"\s*:\s*(\d{1,9})\b')


def tokens_in(chunk: bytes, *, is_streamed: bool) -> int:
    """Return how many tokens a piece of an answer brings, as far as it tells."""
    if is_streamed:
        return chunk.count(_EVENT)
    found = _USAGE.search(chunk)
    return int(found.group(1)) if found else 0


class TokenMeter:
    """The rate of one model's answers together."""

    def __init__(self) -> None:
        self.total = 0
        """Since it began."""
        self._noted: deque[tuple[float, int]] = deque()
        self._began_s: float | None = None
        self._last: float | None = None

    def note(self, at_s: float, tokens: int) -> None:
        """Count tokens that were written just now."""
        if not tokens:
            return
        self.total += tokens
        self._forget(at_s)
        if not self._noted:
            self._began_s = at_s
        self._noted.append((at_s, tokens))

    def rate(self, at_s: float) -> float | None:
        """Return tokens per second; of an idle model what it last wrote, None where it never did.

        Of a first token nobody can tell how fast it came.
        """
        self._forget(at_s)
        if not self._noted or self._began_s is None:
            return self._last
        passed_s = at_s - max(self._began_s, at_s - WINDOW_S)
        if passed_s >= 0.5:
            self._last = sum(tokens for _, tokens in self._noted) / passed_s
        return self._last

    def _forget(self, at_s: float) -> None:
        while self._noted and self._noted[0][0] < at_s - WINDOW_S:
            self._noted.popleft()
