"""How long something has been in the way of one item, since it last got on.

Owns what getting on means. Pure: the times come in as arguments. Doesn't know how long anything is
put up with (`work_item`).
"""

from dataclasses import dataclass

A_WHILE_S = 120.0
"""A try that got on for so long stands for itself, though it may repeat what others had done."""

AT_ONCE_S = 5.0
"""A try that ends sooner has hardly begun."""

SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 15.0


@dataclass
class RetryPolicy:
    """The tries of one item; a hiccup counts no more once the item has got on since."""

    unreachable: int = 0
    """Tries in a row of which what they need couldn't be reached."""
    at_once: int = 0
    """Tries in a row that failed when they had hardly begun."""
    _since_s: float | None = None
    """When the first failure ended since the item last got on."""
    _furthest: int = 0
    """How far any try has come."""
    _began_s: float = 0.0
    _first: int | None = None
    """The first and the last reading of the try that runs."""
    _last: int = 0

    def begin(self, at_s: float) -> None:
        """Take note that a try begins."""
        self._began_s, self._first, self._last = at_s, None, 0

    def advance(self, done: int) -> None:
        """Take note of how far it is."""
        self._first = done if self._first is None else self._first
        self._last = max(self._last, done)

    def fail(self, at_s: float) -> float:
        """Take note that it failed; return for how long nothing has got on, in seconds."""
        self.at_once = self.at_once + 1 if at_s - self._began_s < AT_ONCE_S else 0
        if self._got_on(at_s):
            self.unreachable, self.at_once, self._since_s = 0, 0, None
        self._furthest = max(self._furthest, self._last)
        self._since_s = at_s if self._since_s is None else self._since_s
        return at_s - self._since_s

    @property
    def pause_s(self) -> float:
        """How long to wait before the next try: twice as long each time that it fails at once."""
        return min(SHORTEST_PAUSE_S * 2 ** max(0, min(self.at_once, 8) - 1), LONGEST_PAUSE_S)

    def _got_on(self, at_s: float) -> bool:
        has_gained = self._first is not None and self._last > self._first
        return self._last > self._furthest or (has_gained and at_s - self._began_s > A_WHILE_S)
