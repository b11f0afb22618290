"""Generating on all nodes of a cluster at once, one item on each at a time.

Owns how many items run, how fast each node is, and what becomes of a round whose generator is one
that others made and can't be had: it goes on without what is missing. Doesn't know what an item
does (workers), nor how often it is tried (`work_item`).
"""

import logging
from collections.abc import Callable, Sequence

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import WorkItem
from jupiterd.cycle.generation.generation_options import WITHOUT
from jupiterd.cycle.phases.view import RoundView
from jupiterd.daemon.leader.bounded_concurrency import engine_places, run_spread
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.skipped_item import done_without
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_item import ItemRunner, is_asked_elsewhere
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import GeneratorRefusedError, GeneratorUnreachableError, JupiterError
from jupiterd.protocol.frames import Progressed

log = logging.getLogger(__name__)

SERVER_ITEMS = 1
"""Items that ask one server at a time. It has as many requests under way as pay; of two items at a
slow server each would take the other's turn for silence."""


class GeneratePhase:
    """Generates for one round, for one term."""

    def __init__(
        self,
        term: Term,
        board: ProgressBoard,
        placement: Placement,
        runner: ItemRunner,
        view: RoundView,
    ) -> None:
        """Take the way to run items, and the round."""
        self._term, self._board, self._placement = term, board, placement
        self._runner = runner
        self._view = view
        self._lost: JupiterError | None = None

    async def run(self, items: Sequence[WorkItem], check: Callable[[], None]) -> None:
        """Do these items and record what came of each.

        Args:
            items: those that are open.
            check: raises where they are wanted no more.

        Raises:
            JupiterError: our own student can't generate.
        """
        for item in items:
            total = int(item.params["template"]["samples"])
            self._show(item, Progressed(0, total, "prompts", {}))
        await run_spread(items, self._places, lambda item: self._generate(item, check))

    def _places(self, item: WorkItem) -> int:
        """Return how many items may run: a second one on a node would take memory and no time."""
        return SERVER_ITEMS if is_asked_elsewhere(item) else engine_places(self._placement)

    async def _generate(self, item: WorkItem, check: Callable[[], None]) -> None:
        await self._term.record(await self._done(item, check))

    async def _done(self, item: WorkItem, check: Callable[[], None]) -> WorkCompleted:
        named = self._view.named_generator
        is_named = named is not None and item.params["generator"] == named.id
        if is_named and self._lost is not None:
            return done_without(self._term, self._board, self._view, item, self._lost)
        only_on = named.node if named is not None and is_named else ""
        try:
            done = await self._runner.run(
                self._view.round, item, only_on, check, is_needed=lambda: False
            )
        except (GeneratorRefusedError, GeneratorUnreachableError) as error:
            if not is_named:
                raise
            log.warning("generator_lost", extra={"reason": error.message})
            self._lost = error
            return done_without(self._term, self._board, self._view, item, error)
        if is_named and WITHOUT in done.summary:  # it was lost on the way
            self._lost = GeneratorUnreachableError(str(done.summary[WITHOUT]))
            log.warning("generator_lost", extra={"reason": self._lost.message})
        total = whole_count(done.counts, "prompts")
        self._show(item, Progressed(total, total, "prompts", {}))
        return done

    def _show(self, item: WorkItem, reading: Progressed) -> None:
        self._board.advance(self._view.cycle, item.id, reading, now_s())
