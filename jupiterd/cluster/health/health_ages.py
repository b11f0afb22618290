"""How long each health warning has held.

Owns when each began. Pure: the caller passes the time. Doesn't know the warnings (`health`), or who
is notified. A warning that returns within GRACE_S counts as never interrupted: a machine that
answers for a moment was gone all the time. One that returns later starts again at 0.
"""

from collections.abc import Iterable
from typing import Final

GRACE_S: Final = 30.0
"""Seconds; as long as the alert of a gone machine stays after its return."""


class HealthAges:
    """The start of each warning; `look` updates it."""

    def __init__(self) -> None:
        self._began_s: dict[str, float] = {}
        self._last_true_s: dict[str, float] = {}
        """Key -> when the warning last held."""

    def look(self, now_s: float, holding: Iterable[str]) -> None:
        """Take the keys of all warnings that hold now."""
        self._last_true_s = {
            k: at_s for k, at_s in self._last_true_s.items() if now_s - at_s <= GRACE_S
        }
        self._began_s = {key: self._began_s[key] for key in self._last_true_s}
        for key in holding:
            self._last_true_s[key] = now_s
            self._began_s.setdefault(key, now_s)

    def age_s(self, key: str, now_s: float) -> float:
        """Return the seconds that a warning has held; 0 for an unknown key."""
        return max(0.0, now_s - self._began_s.get(key, now_s))
