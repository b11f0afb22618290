"""How long a gang stands still between two attempts, and what it waits for.

Owns the times of one change, from the moment its leader was told that an attempt can't go on to the
first step of the next, and the line of the log that shows them. Doesn't know what is done then.
"""

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class TransitionTiming:
    """The times of the change that is under way, if one is."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._ending = 0
        self._noticed_s: float | None = None
        self._marks: dict[str, float] = {}

    def begin(self, attempt: int) -> None:
        """Take note that an attempt can't go on; a transition that never ended is forgotten."""
        self._ending = attempt
        self._noticed_s = self._now_s()
        self._marks.clear()

    def mark(self, phase: str) -> None:
        """Take note of the end of a phase; of one that many go through, the last counts."""
        if self._noticed_s is not None:
            self._marks[phase] = self._now_s() - self._noticed_s

    def finish(self, attempt: int) -> None:
        """Log the change once the first step of a later attempt is done."""
        if self._noticed_s is None or attempt <= self._ending:
            return
        self.mark("first_step")
        phases = {f"{phase}_s": f"{after_s:.3f}" for phase, after_s in self._marks.items()}
        fields = {"epoch": attempt, "attempt": attempt, "told_at_s": f"{self._noticed_s:.3f}"}
        log.info("epoch_changed", extra={**fields, **phases})
        self._noticed_s = None
