"""How many requests are under way at a server at once: as many as pay, and no more.

Owns the rule. It begins with a few, doubles them as long as the server then writes clearly more in
the same time, and goes back where it doesn't: a server that answers one after another gains nothing
by a queue, one that answers many together does. A server that says it is too busy gets half. Pure:
it is handed the time. Doesn't know requests or servers.
"""

from typing import Final

FIRST: Final = 4
MOST: Final = 16
PAYS: Final = 1.2
"""So many times as much must be written with twice as many requests; with fewer it is noise."""
ANSWERS_EACH: Final = 2
"""Answers for each place, before what they took counts: the first ones all began together."""


class RequestPace:
    """The number of requests under way at one server."""

    def __init__(self, most: int = MOST, first: int = FIRST) -> None:
        """Take how many there may ever be, and with how many it begins."""
        self._most = most
        self._least_rate = 0.0
        """What the number before wrote; 0 where there was none."""
        self._before = 0
        """The number before."""
        self._began_s: float | None = None
        self._answers = 0
        self._tokens = 0
        self._halved_s = float("-inf")
        self.limit = max(1, min(first, most))
        """So many may be under way."""
        self.reason = "to begin with"
        self.is_settled = self.limit >= most
        """It stays as it is, unless the server is too busy."""

    def answer(self, now_s: float, began_s: float, tokens: int) -> None:
        """Take in that an answer has come.

        Args:
            now_s: the time.
            began_s: when it was asked for.
            tokens: of the answer.
        """
        if self.is_settled or began_s < self._halved_s:
            return
        self._began_s = began_s if self._began_s is None else self._began_s
        self._answers += 1
        self._tokens += max(1, tokens)
        if self._answers >= ANSWERS_EACH * self.limit:
            self._judge(self._tokens / max(now_s - self._began_s, 1e-9), now_s)

    def _judge(self, rate: float, now_s: float) -> None:
        if self._least_rate and rate < PAYS * self._least_rate:
            self.limit = self._before
            self.is_settled, self.reason = True, "more of them write no more in the same time"
            return
        self._least_rate, self._before = rate, self.limit
        self._restart_count(now_s)
        self.is_settled, self.reason = self.limit >= self._most, "it pays"
        self.limit = min(2 * self.limit, self._most)

    def busy(self, now_s: float, began_s: float) -> None:
        """Take in that the server refused a request because it has too many.

        began_s: when that one was asked; those that were on their way together count once.
        """
        if began_s < self._halved_s:
            return
        self._halved_s = now_s
        self.limit = max(1, self.limit // 2)
        self.is_settled, self.reason = True, "the server is too busy for more"

    def _restart_count(self, now_s: float) -> None:
        self._began_s, self._answers, self._tokens = now_s, 0, 0
