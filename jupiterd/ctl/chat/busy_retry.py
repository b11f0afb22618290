"""How long a model that is busy, or still being loaded, is asked again.

Pure. Owns the bound, and what is said of it. Doesn't know how a model is asked.
"""

from dataclasses import dataclass, field
from typing import Final

from jupiterd.ctl.chat.endpoint.answer_chunks import ModelFacts
from jupiterd.errors import BusyError
from jupiterd.formats import duration

PATIENCE_S: Final = 180.0
"""Seconds from the first question until nobody waits any longer."""

LEAST_WAIT_S: Final = 0.2
MOST_WAIT_S: Final = 30.0


@dataclass
class Patience:
    """The patience with one model, for one question."""

    facts: ModelFacts
    began_s: float
    """On the clock of `wait_s`, which only goes forward."""
    _said: set[str] = field(default_factory=set[str])

    def wait_s(self, error: BusyError, now_s: float) -> float | None:
        """Return after how many seconds to ask again; None: not any more, or nobody said when."""
        if not error.retry_after_s:
            return None
        wait_s = min(max(error.retry_after_s, LEAST_WAIT_S), MOST_WAIT_S)
        return wait_s if now_s + wait_s <= self.began_s + PATIENCE_S else None

    def lines(self, error: BusyError) -> list[str]:
        """Return what to say of the wait: each reason once."""
        if error.message in self._said:
            return []
        self._said.add(error.message)
        until = f"for {duration(PATIENCE_S)} at the most; Ctrl-C ends that"
        return [f"{self.facts.title}: {error.message}; it is asked again, {until}"]
