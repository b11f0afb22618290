"""This daemon's report for a member that asks: versions, work and the end of its log.

Owns the report and its bounds. Everything else of a machine travels with heartbeats; this is too
long for them, and is requested by people who look at one machine closely. Doesn't know who asks.
"""

import asyncio
from typing import Final

from jupiterd.daemon.executor.worker_runner import WorkerRunner
from jupiterd.daemon.observability.log_tail import LogTail
from jupiterd.daemon.observability.report_wire import MAX_LINES, MAX_PROCESSES, Report, process_row
from jupiterd.hardware.probe import installed_versions
from jupiterd.hardware.time_limit import LimitedCall

VERSIONS_LIMIT_S: Final = 1.5
"""A driver that is asked for its version may hang."""


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
