"""Training a run or a round by islands: the leader takes one outer step after another.

Owns what is recorded of their rounds. Doesn't know how an island trains (`island_task`), which of
them are at work (`island_roster`), how a round is gathered (`outer_round_collection`), or how the
next one is worked out (`cycle.islands.outer_orders`). All its state is in the ledger, or reported
again by gangs that run: a new leader gathers a round that was open from the beginning.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import (
    CycleStateSet,
    OuterStepTaken,
    TrainingStarted,
)
from jupiterd.cluster.ledger.cycle_state import STOPPED
from jupiterd.cluster.ledger.island_runs import TOO_SLOW, going_on_in
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.planning.island_nodes import read
from jupiterd.cluster.planning.layouts import Island
from jupiterd.cluster.training.island_newcomers import too_slow
from jupiterd.cluster.training.sync_interval import EndedRound, paced_steps
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.islands.outer_orders import (
    OuterOrder,
    first_orders,
    is_over,
    next_order,
)
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.runs.run_phases import drawing
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.daemon.catalog.outer_step_mapping import fact_of, open_rounds, order_of
from jupiterd.daemon.gangs.recorded_predictions import step_with_prediction
from jupiterd.daemon.islands.final_weights import FinalWeights
from jupiterd.daemon.islands.island_facts import island_started
from jupiterd.daemon.islands.island_join import joining
from jupiterd.daemon.islands.island_roster import IslandRoster
from jupiterd.daemon.islands.model_mismatch import without_strangers
from jupiterd.daemon.islands.outer_decisions import (
    horizon_after,
    training_at,
    with_decisions,
)
from jupiterd.daemon.islands.outer_progress import OuterProgress
from jupiterd.daemon.islands.outer_round_collection import LOOK_S, OuterRoundCollection
from jupiterd.daemon.islands.outer_round_timing import OuterRoundTiming
from jupiterd.daemon.islands.state_divergence import without_drifted
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.daemon.planning.layout_inputs import inner_steps_of, speeds_of_islands
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.errors import Bug, LossDivergedError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.training_values import PseudoGradient

log = logging.getLogger(__name__)

BY_ISLANDS = "islands train this round"


class IslandCoordinator:
    """Coordinates the training of one run, or of one round, by its islands, for one term."""

    def __init__(self, services: TrainingServices, training: TrainingSpec) -> None:
        self._services = services
        self._term, self._board = services.term, services.board
        self._run = training.started.cycle
        self._round = training.round
        self._of = training
        self._times = OuterRoundTiming()
        machines, reports = services.machines, services.pseudo_gradients
        self._roster = IslandRoster(self._term, machines, self._board, reports, training)
        self._shown = OuterProgress(self._board, self._roster, reports, training)
        self._training = training_at(training, Horizon())

    async def train(self, step: TrainRound) -> None:
        """Return when the final checkpoint is recorded, or the islands' branch counts no more.

        Raises:
            JupiterError: a reason that no island can mend.
        """
        await self._close_gangs()
        if not self._roster.branch:
            await self._begin(step)
        elif begun := going_on_in(self._term.state.cycles, self._run, self._round):
            await self._term.record(*begun)
        async with joining(
            self._term, self._board, self._services.reach, self._services.fleet_view, self._of
        ):
            while not self._is_over():
                await self._go_on()

    def _is_over(self) -> bool:
        """Say whether the round is trained, a gang trains it, or another branch counts."""
        state = self._roster.state
        has_any = state.last_checkpoint(self._round) is not None
        return has_any or state.start_of(self._round) != self._of.start

    async def _close_gangs(self) -> None:
        """Close what another group has begun with one gang: the islands' branch counts."""
        for opened in self._roster.state.open_attempts:
            await self._term.record(AttemptClosed(self._run, opened.attempt, BY_ISLANDS))

    async def _go_on(self) -> None:
        rounds = open_rounds(self._roster.state, self._round)
        if not rounds:
            raise Bug("there are islands, and no outer step")
        if is_over([order_of(taken) for _, taken in rounds]):
            last = rounds[-1][1]
            self._shown.finishing(last)
            reports = self._services.pseudo_gradients
            final = FinalWeights(self._term, self._roster, reports, self._of)
            await final.record(last, self._is_over)
        else:
            await self._see_through(rounds)

    async def _begin(self, step: TrainRound) -> None:
        """Record the islands and the rounds that are open in the beginning, in one entry."""
        weights = self._of.settings.start_from or await self._drawn(step)
        islands = [
            island_started(self._of, number, island, weights)
            for number, island in enumerate(read(self._of.settings.island_nodes), 1)
        ]
        speeds = speeds_of_islands(
            self._services.fleet_view, [*map(_island, islands)], self._of.shape, self._of.plan
        )
        members = self._roster.members(islands, speeds)
        taken: list[OuterStepTaken] = []
        for order in first_orders(self._training, members, self._every_steps(islands)):
            begun = replace(order, total_tokens=self._of.tokens)
            fact = self._fact(begun, islands, fact_hash(taken[-1]) if taken else "")
            taken.append(self._times.timed(fact, {}))
        await self._term.record(*islands, *taken)
        log.info("islands_begin", extra={"run": self._run, "islands": len(islands)})

    async def _drawn(self, step: TrainRound) -> ArtifactId:
        """Return the weights that all begin with; they are drawn once."""
        item = drawing(self._of.shape.to_plain(), self._of.plan.to_plain(), step.tokenizer)
        done = self._roster.state.completed.get((self._round, item.id))
        if done is None:
            done = await ItemRunner(self._services, self._run).run(self._round, item)
            await self._term.record(done)
        return done.outputs["weights"]

    async def _see_through(self, rounds: Sequence[tuple[str, OuterStepTaken]]) -> None:
        """Wait for the end of the oldest round that is open, and record the next outer step."""
        (_, taken), (last, newest) = rounds[0], rounds[-1]
        collection = self._collection(*rounds[0])

        def counts() -> bool:
            self._shown.gathering(taken, newest, collection)
            now = open_rounds(self._roster.state, self._round)
            return bool(now) and now[-1][0] == last and not self._is_over()

        closing = await collection.closing(lambda: self._roster.lost(taken), counts)
        if closing is None or not counts():
            return  # another leader's step does by now
        if not self._can_go_on(taken, closing, collection.pseudo_gradients):
            await self._services.pseudo_gradients.news(LOOK_S)
            return
        closing = await self._compared(rounds, closing, collection.pseudo_gradients)
        await self._let_go(taken, collection.pseudo_gradients)
        there = self._roster.taking_part(taken, closing, collection.pseudo_gradients)
        there = there or [*map(CycleId, closing.counted)]
        if there and counts():  # else there is no more, since we have looked at what there is
            await self._take_step(rounds, there, closing, collection)

    def _collection(self, after: str, taken: OuterStepTaken) -> OuterRoundCollection:
        """Return what gathers the round that an outer step has ordered; `after`: its hash."""
        return OuterRoundCollection(
            self._services.reach,
            self._services.pseudo_gradients,
            after,
            [*map(CycleId, taken.batches)],
            is_first=taken.number < taken.lag,
            lag=taken.lag,
        )

    def _can_go_on(
        self, taken: OuterStepTaken, closing: Closing, received: Mapping[str, PseudoGradient]
    ) -> bool:
        """Say whether anybody's weights count, or anybody could train the next round.

        Raises:
            LossDivergedError: all are in, and none has weights that are numbers.
        """
        if closing.quarantined and not (closing.counted or closing.missing):
            raise LossDivergedError("no island has weights that are numbers any more")
        return bool(closing.counted or self._roster.taking_part(taken, closing, received))

    async def _compared(
        self,
        rounds: Sequence[tuple[str, OuterStepTaken]],
        closing: Closing,
        received: Mapping[str, PseudoGradient],
    ) -> Closing:
        """Return how a round ends without islands whose weights or model aren't those of others."""
        term, board, machines = self._term, self._board, self._services.machines
        alike = without_drifted(term, board, machines, rounds[-1], closing, received)
        return await without_strangers(term, board, machines, rounds[0][1], alike, received)

    async def _take_step(
        self,
        rounds: Sequence[tuple[str, OuterStepTaken]],
        there: Sequence[CycleId],
        closing: Closing,
        collection: OuterRoundCollection,
    ) -> None:
        """Record the outer step that closes the oldest open round, and orders another one."""
        received, taken, last = collection.pseudo_gradients, rounds[0][1], rounds[-1][0]
        ended = self._times.ended(last, taken, closing, received)
        open_now = [each for _, each in rounds]
        horizon = horizon_after(self._of, open_now, closing, received)
        self._training = training_at(self._of, horizon)
        order = self._next(open_now, there, closing, received, ended)
        artifacts = [collection.artifact(island) for island in closing.counted]
        fact = self._fact(order, self._roster.started(), last, artifacts)
        scored = max(step.scored_step for step in self._roster.branch.values())
        fact = with_decisions(self._of, fact, horizon, taken, scored)
        await self._term.record(self._times.timed(fact, received))
        self._shown.stepped(order.number, closing)

    async def _let_go(self, taken: OuterStepTaken, received: Mapping[str, PseudoGradient]) -> None:
        """End islands that came later, are far slower than others, and that nobody asked for."""
        pinned = self._services.placement.pinned_trainers()
        islands = [each for each in self._roster.started() if not pinned & {*each.nodes}]
        before = self._roster.branch.get(taken.parent)
        rounds = [taken.batches, *([] if before is None else [before.batches])]
        speeds = {each: report.tokens_per_s for each, report in received.items()}
        cycles = self._term.state.cycles
        for island in too_slow(islands, self._roster.planned(), rounds, speeds):
            log.info("island_let_go", extra={"run": self._run, "island": island})
            edit = edit_after(cycles[island].wanted_edit)
            await self._term.record(CycleStateSet(island, STOPPED, TOO_SLOW, edit))

    def _next(
        self,
        rounds: Sequence[OuterStepTaken],
        there: Sequence[CycleId],
        closing: Closing,
        received: Mapping[str, PseudoGradient],
        ended: EndedRound | None,
    ) -> OuterOrder:
        islands, taken = self._roster.all(), rounds[0]
        speeds = self._roster.speeds(there, taken, received)
        begun = [islands[each][1] for each in there]
        members = self._roster.members(begun, [speeds.get(each, 0.0) for each in there])
        slowest_s = max((report.elapsed_s for report in received.values()), default=0.0)
        every = self._every_steps(begun, slowest_s / taken.steps)
        if not self._of.settings.sync_every:
            every = paced_steps(every, rounds[-1].steps, ended, taken.lag)
        before = self._roster.branch.get(taken.parent)
        orders, steps_before = [*map(order_of, rounds)], before.steps if before else 0
        return next_order(self._training, orders, closing, members, every, steps_before)

    def _fact(
        self,
        order: OuterOrder,
        islands: Sequence[TrainingStarted],
        after: str,
        artifacts: Sequence[ArtifactId] = (),
    ) -> OuterStepTaken:
        taken = fact_of(order, self._run, after, artifacts)
        taken = replace(taken, round=self._round, start=self._of.start)
        return step_with_prediction(self._term, self._services.fleet_view, self._of, taken, islands)

    def _every_steps(self, islands: Sequence[TrainingStarted], step_s: float | None = None) -> int:
        """Return how many steps a round has.

        step_s: how long one took in the last round, where there was one
        """
        if self._of.settings.sync_every:
            return self._of.settings.sync_every
        found = [*map(_island, islands)]
        shape, plan, received = (
            self._of.shape,
            self._of.plan,
            self._of.settings.pseudo_gradient_format,
        )
        return inner_steps_of(self._services.fleet_view, found, shape, plan, received, step_s)


def _island(started: TrainingStarted) -> Island:
    return Island.of(started.engine, started.nodes)
