"""This daemon's report for a member that asks: versions, work and the end of its log.

Owns the report and its bounds, and the latest lines of the log, in memory: no file is read for it,
so no path can be requested, and secrets aren't logged in the first place. Everything else of a
machine travels with heartbeats; this is too long for them, and is requested by people who look at
one machine closely. Doesn't know who asks.
"""

import asyncio
import logging
from collections import deque
from itertools import islice
from typing import Final

from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.observability.report_wire import (
    MAX_LINE_CHARACTERS,
    MAX_LINES,
    MAX_PROCESSES,
    Report,
    process_row,
)
from jupiterd.daemon.runtime.logs import KeyValueFormatter
from jupiterd.hardware.probe import installed_versions
from jupiterd.hardware.time_limit import LimitedCall

VERSIONS_LIMIT_S: Final = 1.5
"""A driver that is asked for its version may hang."""


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


class NodeReport:
    """The answer to a member's question, or to our own."""

    def __init__(self, runner: WorkerRunner) -> None:
        self._runner = runner
        self._calls = LimitedCall(installed_versions)
        self._versions: dict[str, str] | None = None
        self._asking = asyncio.Lock()
        self.log = LogTail()

    async def to_plain(self) -> Report:
        """Return `versions` (None where a driver hangs), `processes`, and `log` with its lines."""
        async with self._asking:
            if self._versions is None:
                self._versions = await asyncio.to_thread(self._calls.within, VERSIONS_LIMIT_S)
        orders = list(self._runner.running.values())[:MAX_PROCESSES]
        return {
            "versions": self._versions,
            "processes": [process_row(o.task, o.id, o.attempt) for o in orders],
            "log": self.log.lines(MAX_LINES),
        }


def _cut(line: str) -> str:
    is_short = len(line) <= MAX_LINE_CHARACTERS
    return line if is_short else f"{line[: MAX_LINE_CHARACTERS - 1]}…"
