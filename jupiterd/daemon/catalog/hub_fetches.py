"""Models that commands on this machine fetch from the hub, for status and events.

Owns what is known of them, and for how long. The command fetches, with the tokens and the cache of
whoever gave it, and says how far it is; this daemon only hears of it.
"""

from dataclasses import dataclass
from typing import Any, Final

from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.protocol.commands.check_commands import NoteFetch

SILENT_S: Final = 90.0
"""A fetch of which nothing was heard for so long was cut off with its command. That one is silent
while it compares a file of some GB with its hash, and for 30 s where it had to wait for us."""

SHOWN_S: Final = 10.0
"""So long one that has ended is still shown: the look for events must see it."""

MAX_FETCHES: Final = 16
MAX_NAME: Final = 200

FETCHING, BROUGHT, CUT_OFF = "fetching", "brought", "cut-off"


@dataclass(frozen=True)
class Fetch:
    """One model, as its command last reported it."""

    name: str
    done: int
    total: int
    bytes_per_s: int
    state: str
    heard_s: float

    def to_plain(self, at_s: float) -> dict[str, Any]:
        """Return it for status; sizes in bytes."""
        is_silent = self.state == FETCHING and at_s - self.heard_s > SILENT_S
        return {
            "name": self.name,
            "state": CUT_OFF if is_silent else self.state,
            "done": self.done,
            "total": self.total,
            "bytes_per_s": self.bytes_per_s,
        }


class HubFetches:
    """All that this daemon has heard of lately."""

    def __init__(self) -> None:
        self._fetches: dict[str, Fetch] = {}

    def note(self, notice: NoteFetch, at_s: float) -> None:
        """Take what a command on this machine says of its fetch."""
        name = sanitized_text(notice.name)[:MAX_NAME]
        state = notice.ended if notice.ended in {BROUGHT, CUT_OFF} else FETCHING
        done, total, speed = (
            max(0, each) for each in (notice.done, notice.total, notice.bytes_per_s)
        )
        self._forget(at_s)
        if name in self._fetches or len(self._fetches) < MAX_FETCHES:
            self._fetches[name] = Fetch(name, done, total, speed, state, at_s)

    def rows(self, at_s: float) -> list[dict[str, Any]]:
        """Return those that go on, and those that ended a moment ago."""
        self._forget(at_s)
        return [fetch.to_plain(at_s) for fetch in self._fetches.values()]

    def _forget(self, at_s: float) -> None:
        for name, fetch in list(self._fetches.items()):
            longest_s = SHOWN_S + (SILENT_S if fetch.state == FETCHING else 0.0)
            if at_s - fetch.heard_s > longest_s:
                del self._fetches[name]
