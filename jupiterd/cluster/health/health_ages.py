"""How long each thing that is wrong has been wrong.

Owns when each began. Pure: it is handed the time. Doesn't know what is wrong (`health`), or who is
told. What goes and is back within GRACE_S was never over: a machine that answers for a moment has
been gone all the while. What comes back later begins anew.
"""

from collections.abc import Iterable
from typing import Final

GRACE_S: Final = 30.0
"""As long as the alert of a machine that is gone outlives its coming back."""


class HealthAges:
    """Since when everything holds, looked at again and again."""

    def __init__(self) -> None:
        self._began_s: dict[str, float] = {}
        self._last_true_s: dict[str, float] = {}
        """Key -> when it held last."""

    def look(self, now_s: float, holding: Iterable[str]) -> None:
        """Take in the keys of all that holds just now."""
        self._last_true_s = {
            k: at_s for k, at_s in self._last_true_s.items() if now_s - at_s <= GRACE_S
        }
        self._began_s = {key: self._began_s[key] for key in self._last_true_s}
        for key in holding:
            self._last_true_s[key] = now_s
            self._began_s.setdefault(key, now_s)

    def age_s(self, key: str, now_s: float) -> float:
        """Return for how long it has held; 0 for what nobody has looked at yet."""
        return max(0.0, now_s - self._began_s.get(key, now_s))
