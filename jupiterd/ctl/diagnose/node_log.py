"""The log of any node, as it was sent to the local daemon: the last lines of `node show`.

Owns finding the lines that are new since the last call. Doesn't know how the daemon gets them, or
that a node sends at most its latest 200 lines, each of at most 300 characters.
"""

from collections.abc import Sequence
from pathlib import Path

from jupiterd.errors import DaemonUnreachableError, PeerUnreachableError, TimedOutError
from jupiterd.formats import plain


class NodeLog:
    """One node's daemon log; each call returns the lines since the call before."""

    def __init__(self, state_dir: Path, node: str) -> None:
        self._state_dir = state_dir
        self._wanted = node
        self._seen: list[str] = []
        self.name = node
        """The node's name; before the first document, the text that the user gave."""
        self.note = ""
        """Why the log may be out of date; empty: it isn't."""

    def last(self, count: int) -> list[str]:
        """Return the last `count` lines; `new` continues after them.

        Raises:
            JupiterError: there is no such node, or it hasn't sent its log.
        """
        lines = self._read()
        if lines is None:
            hint = f"what is known of it: jupiterctl node show {self._wanted}"
            raise PeerUnreachableError(f"{self.name} doesn't send its log: {self.note}", hint)
        self._seen = lines
        return lines[-count:] if count else []

    def new(self) -> list[str]:
        """Return the lines since the last call; empty while the daemon or node doesn't answer."""
        try:
            lines = self._read()
        except (DaemonUnreachableError, TimedOutError) as error:
            self.note = error.message
            return []
        if lines is None:
            return []
        fresh, self._seen = lines[overlap(self._seen, lines) :], lines
        return fresh

    def _read(self) -> list[str] | None:
        from jupiterd.ctl.calls import ask

        document = ask(self._state_dir, f"node/{self._wanted}")
        self.name = plain(document["node"]["name"])
        self.note = plain(document["note"]) if document["note"] else ""
        lines = document["log"]
        return None if lines is None else [plain(line) for line in lines]


def overlap(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many first lines of `after` are also the last lines of `before`."""
    most = min(len(before), len(after))
    sizes = range(most, 0, -1)
    return next((size for size in sizes if before[-size:] == after[:size]), 0)
