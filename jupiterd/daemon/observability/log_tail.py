"""The latest lines of this daemon's log, in memory, for members that ask for them.

Owns how many are stored and how long one may be. Doesn't know who asks. No file is read for it, so
no path can be requested; and secrets aren't logged in the first place.
"""

import logging
from collections import deque
from itertools import islice

from jupiterd.daemon.observability.report_wire import MAX_LINE_CHARACTERS, MAX_LINES
from jupiterd.daemon.runtime.logs import KeyValueFormatter


class LogTail(logging.Handler):
    """Keeps the latest lines; add it to the root logger."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(KeyValueFormatter())
        self._lines: deque[str] = deque(maxlen=MAX_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record's lines."""
        try:
            self._lines.extend(map(_cut, self.format(record).splitlines()))
        except Exception:  # noqa: BLE001 - as every handler does: logging breaks nothing
            self.handleError(record)

    def lines(self, most: int) -> list[str]:
        """Return up to so many of them, the latest last."""
        begin = max(0, len(self._lines) - max(0, most))
        return list(islice(self._lines, begin, None))


def _cut(line: str) -> str:
    is_short = len(line) <= MAX_LINE_CHARACTERS
    return line if is_short else f"{line[: MAX_LINE_CHARACTERS - 1]}…"
