"""A whole launch: its tries, one after another, until one succeeds or there may be no more.

Owns counting them. Doesn't know what happens within a try (`run`), or where ranks run (`places`).
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from jupiterd.ctl.launch.described import notices
from jupiterd.ctl.launch.places import Opening, open_sites, prepare
from jupiterd.ctl.launch.recording import Recording
from jupiterd.ctl.launch.run import Failure, LaunchRun
from jupiterd.ctl.launch.shipping import shipped
from jupiterd.ctl.launch.store_python import with_store
from jupiterd.ctl.launch.telling import Telling
from jupiterd.errors import JupiterError
from jupiterd.processes.script_plan import Attempt

if TYPE_CHECKING:
    from jupiterd.ctl.launch.surroundings import Wanted


class Attempts:
    """The tries of one launch; `run` does them."""

    def __init__(
        self, wanted: "Wanted", state_dir: Path, telling: Telling, record: Recording
    ) -> None:
        self._wanted = wanted
        self._state_dir = state_dir
        self._telling = telling
        self._record = record

    async def run(self, begun: Callable[[], None]) -> int:
        """Return the exit status: that of the rank that failed first in the last try, or 0.

        begun: called once the ranks of the first try are started

        Raises:
            JupiterError: they can't be.
        """
        failure = await self._first_without_failure(begun)
        status, words = (failure.status, failure.words) if failure else (0, "")
        if failure is not None:
            self._telling.report(failure.words, failure.rank)
        self._record.ended(status, words)
        self._telling.show_result(status, words)
        return status

    async def _first_without_failure(self, begun: Callable[[], None]) -> Failure | None:
        most = self._wanted.max_restarts
        for restart in range(most + 1):
            try:
                attempt = Attempt(f"jupiter-{self._record.id}", restart, most)
                failure = await self._try(attempt, begun)
            except JupiterError as error:
                self._not_begun(error, restart)
                raise
            if failure is None or failure.rank is None or failure.is_final or restart == most:
                return failure
            self._telling.report(failure.words, failure.rank)
            self._telling.notice(f"all ranks are started again ({restart + 1} of {most})")
        return None

    def _not_begun(self, error: JupiterError, restart: int) -> None:
        """Write down what kept a try from running: nobody may look at the terminal any more."""
        if restart:
            self._telling.notice(f"the ranks can't be started again: {error.message}")
        self._record.ended(error.exit_code, error.message)

    async def _try(self, attempt: Attempt, begun: Callable[[], None]) -> Failure | None:
        telling = self._telling
        opening = Opening(attempt, self._record.id, telling.window() or (0, 0))
        async with AsyncExitStack() as stack:
            prepared = await prepare(stack, self._state_dir, self._wanted, opening)
            for line in () if attempt.restart else notices(prepared):
                telling.notice(line)
            prepared = await asyncio.to_thread(with_store, prepared, telling.notice)
            prepared = await shipped(prepared, telling.notice)
            sites = await open_sites(stack, prepared, telling.notice)
            names = [site.name for site in sites] if self._wanted.nodes else []
            ranks = sum(site.processes for site in sites)
            self._record.began(names, ranks, attempt.restart)
            if telling.result is not None:
                telling.result.began(prepared, attempt.restart)
            if not attempt.restart:
                begun()
            return await LaunchRun(sites, ranks, telling).run()
