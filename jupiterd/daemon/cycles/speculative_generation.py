"""Generating for the next round while this one trains, on nodes that don't train.

Owns who does it, and that it disturbs nothing: it is silent, gives way as soon as the training is
over, and what fails here is left to the round itself. Doesn't know what may be written ahead
(`phases.generate`), or how an item is done.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from jupiterd.cluster.planning.roles import Role
from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.generation.generation_options import WITHOUT
from jupiterd.cycle.phases.view import RoundView
from jupiterd.daemon.cycles.generate_phase import SERVER_ITEMS
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_item import ItemRunner, is_asked_elsewhere
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import GeneratorUnreachableError, JupiterError
from jupiterd.ids import NodeId

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""So often it is looked who has nothing to do, and said how it goes."""


@asynccontextmanager
async def generating_ahead(
    term: Term,
    board: ProgressBoard,
    placement: Placement,
    runner: ItemRunner,
    view: RoundView,
    items: Sequence[WorkItem],
) -> AsyncGenerator[None]:
    """Generate these items of the next round as long as the context is open."""
    ahead = _Ahead(term, board, placement, runner, view, items)
    task = asyncio.get_running_loop().create_task(ahead.run(), name="generating ahead")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class _Ahead:
    def __init__(
        self,
        term: Term,
        board: ProgressBoard,
        placement: Placement,
        runner: ItemRunner,
        view: RoundView,
        items: Sequence[WorkItem],
    ) -> None:
        self._term, self._shared_board, self._placement = term, board, placement
        self._view = view
        self._waiting = list(items)
        self._board = ProgressBoard()
        self._board.begin(view.cycle, view.round + 1, Phase.GENERATE, now_s())
        self._runner = runner.showing_on(self._board)
        self._busy: set[NodeId] = set()

    async def run(self) -> None:
        """Do what can be done; nothing that goes wrong here may reach those that train."""
        try:
            await self._run()
        except Exception:
            log.exception("ahead_broke")

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while self._waiting or self._busy:
                for node in self._free_nodes():
                    if self._waiting:
                        self._busy.add(node)
                        group.create_task(self._generate(self._waiting.pop(0), node))
                await asyncio.sleep(LOOK_S)
                (shown,) = self._board.to_plain(now_s())
                self._shared_board.note(self._view.cycle, {"ahead": shown["gang"]})

    def _free_nodes(self) -> list[NodeId]:
        """Return who may do the next item: it mustn't slow those that train."""
        seats = [seat for seat in self._placement.seats() if seat.node not in self._busy]
        if self._waiting and is_asked_elsewhere(self._waiting[0]):
            named = self._view.named_generator
            only_on = "" if named is None else named.node
            able = [seat.node for seat in seats if not only_on or seat.node == only_on]
            return able[: max(0, SERVER_ITEMS - len(self._busy))]
        return [
            seat.node
            for seat in seats
            if seat.role == Role.GENERATOR and seat.has_engine and not seat.running
        ]

    async def _generate(self, item: WorkItem, node: NodeId) -> None:
        try:
            done = await self._runner.run(self._view.round + 1, item, node, is_needed=lambda: False)
            if WITHOUT in done.summary:  # the round itself asks for the rest
                raise GeneratorUnreachableError(str(done.summary[WITHOUT]))
            await self._term.record(done)
        except JupiterError as error:  # the round itself tries it again, and says why it can't
            log.info("ahead_failed", extra={"item": item.id, "reason": error.message})
            self._waiting.clear()
        finally:
            self._busy.discard(node)
