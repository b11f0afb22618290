"""Collecting from all sources of a round: one that can't be had doesn't end the cycle.

Owns what becomes of such a source, or of a part of one: the others go on, what rounds before had of
it counts, and its reason is recorded. Doesn't know how a source is read (workers), nor how often it
is tried (`work_item`).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.data.lost_sources import Lost, in_place_of, is_enough, lost_among, named_part
from jupiterd.cycle.domain.domain import Domain
from jupiterd.cycle.domain.shared_hosts import in_turns
from jupiterd.cycle.phases.source_reading import source_parts
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.errors import EmptySourceError, JupiterError, SourceUnreachableError

log = logging.getLogger(__name__)


class CollectPhase:
    """Collects from the sources of one round, for one term."""

    def __init__(
        self,
        term: Term,
        board: ProgressBoard,
        runner: ItemRunner,
        domain: Domain,
        look: Callable[[], RoundView],
    ) -> None:
        """Take the way to run items, and `look`, which returns the round as it is now."""
        self._term, self._board = term, board
        self._runner = runner
        self._look = look
        view = look()
        self._round = view.round
        self._cycle = view.cycle
        self._parts = {part.item: part for part in source_parts(view, domain)}
        """Item -> its source, or the part of one that it reads."""
        self._before = {
            item: view.completed.get(part.item_before) for item, part in self._parts.items()
        }
        """Item -> what the round before has of it."""

    async def run(self, items: Sequence[WorkItem], check: Callable[[], None]) -> None:
        """Collect from these sources, and record what came of each.

        What couldn't be had is recorded last: until then another leader tries it anew.

        Args:
            items: one of each source, or part of one, that is open.
            check: raises where they are wanted no more.

        Raises:
            JupiterError: without what couldn't be had there is too little text.
        """
        lost: dict[str, JupiterError] = {}
        async with asyncio.TaskGroup() as group:
            for turns in in_turns({item.id: self._parts[item.id].source for item in items}):
                own = [item for item in items if item.id in turns]
                group.create_task(self._collect_in_turn(own, lost, check), name=own[0].id)
        if lost and not self._is_enough():
            raise self._too_little(lost)
        if lost:
            await self._term.record(*(self._fact(*each) for each in sorted(lost.items())))

    async def _collect_in_turn(
        self, items: Sequence[WorkItem], lost: dict[str, JupiterError], check: Callable[[], None]
    ) -> None:
        """Collect from sources of the same hosts, one after the other wherever each is read."""
        for item in items:
            await self._collect(item, lost, check)

    async def _collect(
        self, item: WorkItem, lost: dict[str, JupiterError], check: Callable[[], None]
    ) -> None:
        try:
            done = await self._runner.run(
                self._round, item, check=check, is_needed=lambda: not self._is_enough()
            )
        except (EmptySourceError, SourceUnreachableError) as error:
            lost[item.id] = error
            source = self._name(item.id)
            log.warning("source_lost", extra={"source": source, "reason": error.message})
            self._board.explain(self._cycle, f"source {source} failed: {error.message}")
        else:
            await self._term.record(done)

    def _name(self, item: str) -> str:
        part = self._parts[item]
        return named_part(part.source.name, part.place)

    def _is_enough(self) -> bool:
        """Say whether the round can do without what is still open."""
        completed = self._look().completed
        found = (completed.get(item, before) for item, before in self._before.items())
        return is_enough(result for result in found if result is not None)

    def _fact(self, item: str, error: JupiterError) -> WorkCompleted:
        part = self._parts[item]
        result = in_place_of(part.source.name, error.message, self._before[item], part.place)
        steering = self._term.cycle(self._cycle).steering
        return WorkCompleted(
            cycle=self._cycle,
            round=self._round,
            phase=str(Phase.COLLECT),
            item=steering.recorded_id(self._round, str(Phase.COLLECT), item),
            node=self._term.self_id,
            outputs=result.outputs,
            counts=result.counts,
            summary=result.summary,
        )

    def _too_little(self, lost: Mapping[str, JupiterError]) -> JupiterError:
        errors = list(lost.values())
        if len(self._parts) == 1:
            return errors[0]
        worst = next((e for e in errors if isinstance(e, SourceUnreachableError)), errors[0])
        failures = "; ".join(f"source {self._name(item)}: {e.message}" for item, e in lost.items())
        return type(worst)(f"too little text without what failed: {failures}", worst.hint)


def lost_in(view: RoundView) -> Sequence[Lost]:
    """Return the sources that couldn't be had in this round."""
    first = item_id(view.round, Phase.COLLECT, 0).removesuffix("0")
    done = [result for item, result in view.completed.items() if item.startswith(first)]
    return lost_among((result.summary, result.counts) for result in done)
