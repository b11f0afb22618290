"""How far an evaluation is, on one line that is never older than a second.

Owns the words, and the thread that shows them: a worker says nothing while it imports, loads a
model or scores a long window, and neither does a daemon that fetches files. Doesn't know what is
evaluated.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from jupiterd.ctl.output.console import Console
from jupiterd.formats import duration

TICK_S = 1.0
PATIENCE_S = 20.0
"""Silence that is nothing odd, in s."""
PATIENCE_GAPS = 2.0
"""So many times the longest silence so far isn't either."""
LEAST_S = 3.0
"""Nothing is told of the time left before so many seconds of work."""

Now = Callable[[], float]


@dataclass
class Pace:
    """What is known of one piece of work, and since when."""

    began_s: float
    """When it was asked for; loading counts."""
    done: int = 0
    total: int = 0
    """0: nothing is known yet."""
    first: int = 0
    first_s: float = 0.0
    """How much was done when something was told for the first time, and when that was."""
    last_s: float = 0.0
    longest_gap_s: float = 0.0

    def took(self, done: int, total: int, now_s: float) -> None:
        """Take in that so much is done by now."""
        if not self.total:
            self.first, self.first_s, self.last_s = done, now_s, now_s
        elif done != self.done:
            self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_s)
            self.last_s = now_s
        self.done, self.total = done, total

    def line(self, name: str, unit: str, now_s: float) -> str:
        """Return what is shown."""
        if not self.total:
            return f"{name}: loading, {duration(now_s - self.began_s)}"
        return f"{name}: {self.done} of {self.total} {unit}{self._pace(now_s)}"

    def _pace(self, now_s: float) -> str:
        """Return how long it takes yet; where nothing moves no time is promised."""
        silent_s = now_s - self.last_s
        if self.done >= self.total:
            return ""
        if silent_s > max(PATIENCE_S, PATIENCE_GAPS * self.longest_gap_s):
            return f", nothing new for {duration(silent_s)}"
        worked_s = self.last_s - self.first_s
        if self.done <= self.first or worked_s < LEAST_S:
            return f", {duration(now_s - self.began_s)} so far"
        left_s = worked_s / (self.done - self.first) * (self.total - self.done) - silent_s
        return f", about {duration(left_s)} left" if left_s >= 1 else ", nearly done"


class EvalProgress:
    """Shows a line while it is entered; call it with what is done, and of how much."""

    def __init__(self, console: Console, name: str, unit: str, now: Now = time.monotonic) -> None:
        """Take whose progress it is, and in what it is counted."""
        self._console, self._name, self._unit, self._now = console, name, unit, now
        self._pace = Pace(now())
        self._ended = threading.Event()
        self._ticking: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Show the line, and keep it true."""
        self._show()
        if self._console.can_pass:
            self._ticking = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticking.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the line to others."""
        self._ended.set()
        if self._ticking is not None:
            self._ticking.join()

    def __call__(self, done: int, total: int) -> None:
        """Take in what a worker says."""
        self._pace.took(done, total, self._now())
        self._show()

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            self._show()

    def _show(self) -> None:
        self._console.passing_notice(self._pace.line(self._name, self._unit, self._now()))
