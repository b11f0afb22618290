"""The log of any node, as it was sent to the daemon here: the lines that `node show` ends with.

Owns which lines are new since the last look. Doesn't know how the daemon gets them, or that a node
sends no more than its latest 200 lines to others, each 300 characters at most.
"""

from collections.abc import Sequence
from pathlib import Path

from jupiterd.errors import DaemonUnreachableError, PeerUnreachableError, TimedOutError
from jupiterd.formats import plain


class NodeLog:
    """One node's daemon log; each look gives the lines that have come since the last."""

    def __init__(self, state_dir: Path, node: str) -> None:
        self._state_dir = state_dir
        self._wanted = node
        self._seen: list[str] = []
        self.name = node
        """The node's name; `node` as it was given until its document was read."""
        self.note = ""
        """Why there is nothing newer; empty where all is well."""

    def last(self, count: int) -> list[str]:
        """Return the last so many lines; then look on.

        Raises:
            JupiterError: no node is called so, or it hasn't sent its log.
        """
        lines = self._read()
        if lines is None:
            hint = f"what is known of it: jupiterctl node show {self._wanted}"
            raise PeerUnreachableError(f"{self.name} doesn't send its log: {self.note}", hint)
        self._seen = lines
        return lines[-count:] if count else []

    def new(self) -> list[str]:
        """Return what has come since; nothing while nobody answers."""
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
    """Return how many lines at the beginning of `after` are the end of `before`."""
    most = min(len(before), len(after))
    sizes = range(most, 0, -1)
    return next((size for size in sizes if before[-size:] == after[:size]), 0)
