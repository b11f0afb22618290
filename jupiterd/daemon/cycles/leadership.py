"""Becoming leader, leading, and stepping down.

Owns the task that leads, one for each reign. Doesn't know how leaders are chosen (`election`).
"""

import asyncio
import logging
from collections.abc import Callable

from jupiterd.daemon.cycles.term_duties import Founding, found_cluster, lead
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import JupiterError

log = logging.getLogger(__name__)

AGAIN_S = 2.0


class Leadership:
    """This node's reigns, one after another."""

    def __init__(
        self, own: Founding, begin: Callable[[int], TermServices], group: asyncio.TaskGroup
    ) -> None:
        self._own = own
        self._begin = begin
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self.leading: TermServices | None = None
        """What the shells of the present reign share; None where another node leads."""

    def on_lead(self, term: int) -> None:
        """Begin to lead, or lead on under a higher term: nothing is disturbed."""
        if self.leading is not None:
            self.leading.term.number = term
            return
        self.leading = self._begin(term)
        self._task = self._group.create_task(self._lead(self.leading), name="lead")

    def on_step_down(self, reason: str) -> None:
        """End the reign, with everything it has started."""
        if self.leading is not None:
            self.leading.term.is_over = True
            self.leading = None
        if self._task is not None:
            self._task.cancel(reason)

    async def _lead(self, services: TermServices) -> None:
        while not services.term.is_over:
            try:
                await self._begin_term(services)
            except JupiterError as error:
                log.warning("leading_failed", extra={"reason": error.message})
                await asyncio.sleep(AGAIN_S)
            except Exception:
                log.exception("leading_failed")
                await asyncio.sleep(AGAIN_S)

    async def _begin_term(self, services: TermServices) -> None:
        await services.term.exchange.unite(services.machines.answering())
        await found_cluster(services.term, self._own)
        await lead(services)
