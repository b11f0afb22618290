"""Machines that become islands of a run that is being trained.

Owns looking for them, and what the leader records of one. Doesn't know who may join, or who is let
go again (`cluster.island_newcomers`), nor rounds: an island has a part in the first one that opens
after its ranks have met and caught up from another island's checkpoint.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from jupiterd.cluster.facts.facts import CheckpointCommitted, CycleStateSet, TrainingStarted
from jupiterd.cluster.ledger.cycle_state import RUNNING, STOPPED, CycleState
from jupiterd.cluster.ledger.island_runs import TOO_SLOW, island_id, islands_in, number_of
from jupiterd.cluster.planning.engines import MLX, TORCH
from jupiterd.cluster.planning.layouts import Island
from jupiterd.cluster.training.island_newcomers import newcomers
from jupiterd.cluster.training.island_seeds import reseeded, seeds
from jupiterd.cluster.training.scale_policy import SETTLE_S
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.islands.outer_orders import ADRIFT
from jupiterd.cycle.training.architectures import can_train
from jupiterd.daemon.catalog.outer_step_mapping import open_rounds
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.adapter_support import that_train_it
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.daemon.planning.layout_inputs import slow_beside
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.daemon.runtime.clock import now_s, wall_iso
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId, short

log = logging.getLogger(__name__)

LOOK_S = 1.0


@asynccontextmanager
async def joining(
    term: Term,
    board: ProgressBoard,
    reach: ArtifactReach,
    fleet_view: FleetView,
    training: TrainingSpec,
) -> AsyncGenerator[None]:
    """Let machines become islands of a run meanwhile."""
    newcomers = IslandJoin(term, board, reach, fleet_view, training)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(newcomers.watch())
        yield
        task.cancel()


class IslandJoin:
    """Those of one run, for one term."""

    def __init__(
        self,
        term: Term,
        board: ProgressBoard,
        reach: ArtifactReach,
        fleet_view: FleetView,
        training: TrainingSpec,
    ) -> None:
        self._term, self._board, self._reach, self._fleet_view = term, board, reach, fleet_view
        self._of = training
        self._run = training.started.cycle
        self._round = training.round
        self._since_s: dict[NodeId, float] = {}
        """When each was seen first, of those that were there at every look since."""
        self._slow: set[NodeId] = set()
        """Machines that are known to be too slow beside the islands there are."""
        self._beside: Sequence[Island] = ()
        """Those islands."""

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look(now_s())
            except JupiterError as error:
                if self._term.is_over:
                    raise
                log.warning("no_island_joins", extra={"reason": error.message})

    async def look(self, at_s: float) -> None:
        """Record an island of each machine that has been there for long enough.

        It waits for the first checkpoint of any island: there would be all steps to catch up on.
        Once all steps were given out nobody is needed any more.
        """
        rounds = open_rounds(self._term.cycle(self._run), self._round)
        if not rounds or not rounds[-1][1].steps:
            return
        await self._let_in_again()
        islands = [started for _, started in self._islands]
        found = self._found(islands)
        self._since_s = {node: self._since_s.get(node, at_s) for node in found}
        settled = {n: found[n] for n in found if at_s - self._since_s[n] >= SETTLE_S}
        due = self._fast(settled) if islands and settled else []
        if not due or (seed := await self._seed()) is None:
            return
        numbers = [number_of(island) for island in islands]
        for number, node in enumerate(due, max(numbers) + 1):
            await self._record(self._island(islands[0], number, node, found[node]), seed)

    async def _let_in_again(self) -> None:
        """Let machines go on that were let go as too slow, and that people want since then."""
        pinned = self._fleet_view.placement.pinned_trainers()
        for state, island in self._islands:
            if state.wanted_reason == TOO_SLOW and pinned & {*island.nodes}:
                edit = edit_after(state.wanted_edit)
                wanted = CycleStateSet(island.cycle, RUNNING, "people want it to train", edit)
                await self._term.record(wanted)

    @property
    def _islands(self) -> list[tuple[CycleState, TrainingStarted]]:
        return islands_in(self._term.state.cycles, self._run, self._round)

    def _found(self, islands: list[TrainingStarted]) -> dict[NodeId, str]:
        usable = {each for each in (TORCH, MLX) if can_train(each, self._of.shape)}
        known = {
            node: self._fleet_view.machines.hardware_of(node)
            for each in islands
            for node in each.nodes
        }
        at_work: dict[NodeId, Hardware] = {node: m for node, m in known.items() if m is not None}
        run = self._term.cycle(self._run)
        machines = {**at_work, **that_train_it(trainers(self._fleet_view.placement), run)}
        batch = self._of.plan.batch_sequences
        return newcomers(self._of.started, islands, machines, usable, batch)

    def _fast(self, engines: Mapping[NodeId, str]) -> list[NodeId]:
        """Return who of some machines isn't known to be too slow; those that people want aren't."""
        going_on = [each for state, each in self._islands if _goes_on(state)]
        beside = [Island.of(each.engine, each.nodes) for each in going_on]
        if beside != self._beside:
            self._beside, self._slow = beside, set()
        unknown = engines.keys() - self._slow
        if beside and unknown:
            new = [Island.of(engines[node], [node]) for node in unknown]
            self._slow |= slow_beside(self._fleet_view, beside, new, self._of.shape, self._of.plan)
        slow = self._slow - self._fleet_view.placement.pinned_trainers()
        return [node for node in engines if node not in slow]

    async def _seed(self) -> CheckpointCommitted | None:
        line = self._term.cycle(self._run).outer_branch(self._round)
        for seed in seeds(line, [state for state, _ in self._islands], ADRIFT):
            is_whole = seed.artifact not in self._reach.damaged
            if is_whole and await self._reach.is_in_reach(seed.artifact):
                return seed
        return None

    def _island(
        self, sibling: TrainingStarted, number: int, node: NodeId, engine: str
    ) -> TrainingStarted:
        """Return the run of an island; groups that are apart have others that come.

        So do the ids.
        """
        return replace(
            sibling,
            cycle=island_id(self._run, self._round, self._of.start, node),
            name=f"{sibling.name.rpartition('/')[0]}/{number}",
            engine=engine,
            nodes=(node,),
            started_at=wall_iso(),
        )

    async def _record(self, island: TrainingStarted, seed: CheckpointCommitted) -> None:
        await self._term.record(island, reseeded(island.cycle, seed, None))
        (node,) = island.nodes
        extra = {"run": self._run, "node": short(node), "engine": island.engine}
        log.info("island_joins", extra={**extra, "from_step": seed.step})
        name = self._fleet_view.machines.names().get(node, short(node))
        self._board.explain(self._run, f"{name} joins as an island of its own")


def _goes_on(island: CycleState) -> bool:
    return island.failed is None and island.wanted != STOPPED
