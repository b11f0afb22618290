"""A whole launch: its attempts, one after another, until one succeeds or no restart is left.

Owns the restarts. Doesn't know what happens in an attempt (`run`), or where ranks run (`places`).
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from jupiterd.ctl.launch.described import notices
from jupiterd.ctl.launch.places import AttemptOpening, open_sites, prepare
from jupiterd.ctl.launch.recording import Recording
from jupiterd.ctl.launch.reporter import LaunchReporter
from jupiterd.ctl.launch.run import LaunchFailure, LaunchRun
from jupiterd.ctl.launch.shipping import shipped
from jupiterd.ctl.launch.store_python import with_store
from jupiterd.errors import JupiterError
from jupiterd.processes.script_plan import LaunchAttempt

if TYPE_CHECKING:
    from jupiterd.ctl.launch.launch_request import LaunchRequest


class Attempts:
    """The attempts of one launch; `run` makes them."""

    def __init__(
        self, wanted: "LaunchRequest", state_dir: Path, reporter: LaunchReporter, record: Recording
    ) -> None:
        self._wanted = wanted
        self._state_dir = state_dir
        self._reporter = reporter
        self._record = record

    async def run(self, begun: Callable[[], None]) -> int:
        """Return the exit status: that of the rank that failed first in the last attempt, or 0.

        begun: called after the ranks of the first attempt were started

        Raises:
            JupiterError: the ranks of an attempt can't be started.
        """
        failure = await self._first_without_failure(begun)
        status, words = (failure.status, failure.words) if failure else (0, "")
        if failure is not None:
            self._reporter.report(failure.words, failure.rank)
        self._record.ended(status, words)
        self._reporter.show_result(status, words)
        return status

    async def _first_without_failure(self, begun: Callable[[], None]) -> LaunchFailure | None:
        most = self._wanted.max_restarts
        for restart in range(most + 1):
            try:
                attempt = LaunchAttempt(f"jupiter-{self._record.id}", restart, most)
                failure = await self._try(attempt, begun)
            except JupiterError as error:
                self._not_begun(error, restart)
                raise
            if failure is None or failure.rank is None or failure.is_final or restart == most:
                return failure
            self._reporter.report(failure.words, failure.rank)
            self._reporter.notice(f"all ranks are started again ({restart + 1} of {most})")
        return None

    def _not_begun(self, error: JupiterError, restart: int) -> None:
        """Record why an attempt couldn't start: after a restart, the terminal may be closed."""
        if restart:
            self._reporter.notice(f"the ranks can't be started again: {error.message}")
        self._record.ended(error.exit_code, error.message)

    async def _try(self, attempt: LaunchAttempt, begun: Callable[[], None]) -> LaunchFailure | None:
        reporter = self._reporter
        opening = AttemptOpening(attempt, self._record.id, reporter.window() or (0, 0))
        async with AsyncExitStack() as stack:
            prepared = await prepare(stack, self._state_dir, self._wanted, opening)
            for line in () if attempt.restart else notices(prepared):
                reporter.notice(line)
            prepared = await asyncio.to_thread(with_store, prepared, reporter.notice)
            prepared = await shipped(prepared, reporter.notice)
            sites = await open_sites(stack, prepared, reporter.notice)
            names = [site.name for site in sites] if self._wanted.nodes else []
            ranks = sum(site.processes for site in sites)
            self._record.began(names, ranks, attempt.restart)
            if reporter.result is not None:
                reporter.result.began(prepared, attempt.restart)
            if not attempt.restart:
                begun()
            return await LaunchRun(sites, ranks, reporter).run()
