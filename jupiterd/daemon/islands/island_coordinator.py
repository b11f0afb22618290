"""The leader's walk of what islands train, a run or a round: from one outer step to the next.

Owns what islands there are, and what is recorded of their rounds. Doesn't know how an island trains
(`island_task`), how a round is gathered (`outer_round_collection`), or how the next one is worked
out (`cycle.outer_orders`). Everything that it goes by is in the ledger, or told once more by gangs
that run: a round that was open when the leader changed is simply gathered anew.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    CycleStateSet,
    OuterStepTaken,
    TrainingStarted,
)
from jupiterd.cluster.ledger.cycle_state import STOPPED, CycleState
from jupiterd.cluster.ledger.island_runs import TOO_SLOW, going_on_in, islands_in, stopped_in
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.planning.engines import ranks_of
from jupiterd.cluster.planning.island_nodes import read
from jupiterd.cluster.planning.layouts import Island
from jupiterd.cluster.planning.outer_throughput import of_all
from jupiterd.cluster.planning.predicted_throughput import newest
from jupiterd.cluster.training.island_newcomers import too_slow
from jupiterd.cluster.training.island_seeds import left_out_last
from jupiterd.cluster.training.sync_interval import EndedRound, paced_steps
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.islands.island_speeds import speeds_before
from jupiterd.cycle.islands.outer_orders import (
    ADRIFT,
    Member,
    OuterOrder,
    first_orders,
    is_over,
    next_order,
)
from jupiterd.cycle.islands.outer_round import LOST_GRACE_S, Closing
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.runs.run_phases import drawing
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.daemon.catalog.outer_step_mapping import fact_of, open_rounds, order_of
from jupiterd.daemon.gangs.recorded_predictions import step_foretold
from jupiterd.daemon.islands.island_facts import island_started, last_weights
from jupiterd.daemon.islands.island_join import joining
from jupiterd.daemon.islands.model_mismatch import without_strangers
from jupiterd.daemon.islands.outer_decisions import (
    horizon_after,
    shown_decisions,
    training_at,
    with_decisions,
)
from jupiterd.daemon.islands.outer_round_collection import LOOK_S, OuterRoundCollection
from jupiterd.daemon.islands.outer_round_timing import OuterRoundTiming
from jupiterd.daemon.islands.state_divergence import without_drifted
from jupiterd.daemon.leader.island_progress import OUTER_STEP
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.leader.work_item import ItemRunner
from jupiterd.daemon.planning.layout_inputs import inner_steps_of, speeds_of_islands
from jupiterd.daemon.planning.training_spec import ROUND, TrainingSpec
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import Bug, LossDivergedError, from_wire
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.training_values import PseudoGradient

log = logging.getLogger(__name__)

NEWEST = 5
"""Outer steps of which people are told how fast they went."""

BY_ISLANDS = "islands train this round"

MOMENT_S = 3.0
"""How long islands may take to end by themselves once the last weights of all are recorded."""

TRAINING, IN, STARTING, AWAY, FAILED = "training", "in", "starting", "away", "failed"
"""What an island does: `in` is one that waits for the others, with its part of the round done."""


class IslandCoordinator:
    """Conducts the training of one run, or of one round, by its islands, for one term."""

    def __init__(self, services: TrainingServices, training: TrainingSpec) -> None:
        self._services = services
        self._term, self._board = services.term, services.board
        self._run = training.started.cycle
        self._round = training.round
        self._of = training
        self._times = OuterRoundTiming()
        self._sound_seen_s = 0.0
        """When an island was here last that has the weights of all, as training ends."""
        self._training = training_at(training, Horizon())

    async def train(self, step: TrainRound) -> None:
        """Return when the final checkpoint is recorded, or the islands' line counts no more.

        Raises:
            JupiterError: a reason that no island can mend.
        """
        await self._close_gangs()
        if not self._state.outer_branch(self._round):
            await self._begin(step)
        elif begun := going_on_in(self._term.state.cycles, self._run, self._round):
            await self._term.record(*begun)
        async with joining(
            self._term, self._board, self._services.reach, self._services.fleet_view, self._of
        ):
            while not self._is_over():
                await self._go_on()

    def _is_over(self) -> bool:
        """Say whether the round is trained, or a gang trains it, or another line counts by now."""
        state = self._state
        has_any = state.last_checkpoint(self._round) is not None
        return has_any or state.start_of(self._round) != self._of.start

    async def _close_gangs(self) -> None:
        """Close what another group has begun with one gang: the islands' line counts."""
        for opened in self._state.open_attempts:
            await self._term.record(AttemptClosed(self._run, opened.attempt, BY_ISLANDS))

    async def _go_on(self) -> None:
        rounds = open_rounds(self._state, self._round)
        if not rounds:
            raise Bug("there are islands, and no outer step")
        if is_over([order_of(taken) for _, taken in rounds]):
            await self._finish(rounds[-1][1])
        else:
            await self._see_through(rounds)

    @property
    def _state(self) -> CycleState:
        return self._term.cycle(self._run)

    def _islands(self) -> dict[CycleId, tuple[CycleState, TrainingStarted]]:
        found = islands_in(self._term.state.cycles, self._run, self._round)
        return {started.cycle: (state, started) for state, started in found}

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
        members = self._members(islands, speeds)
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
        done = self._state.completed.get((self._round, item.id))
        if done is None:
            done = await ItemRunner(self._services, self._run).run(self._round, item)
            await self._term.record(done)
        return done.outputs["weights"]

    async def _see_through(self, rounds: Sequence[tuple[str, OuterStepTaken]]) -> None:
        """Wait for the end of the oldest round that is open, and record the next outer step."""
        (after, taken), newest = rounds[0], rounds[-1]
        last, _ = newest
        gathering = OuterRoundCollection(
            self._services.reach,
            self._services.pseudo_gradients,
            after,
            [*map(CycleId, taken.batches)],
            is_first=taken.number < taken.lag,
            lag=taken.lag,
        )

        def counts() -> bool:
            self._show_gathering(taken, rounds[-1][1], gathering)
            now = open_rounds(self._state, self._round)
            return bool(now) and now[-1][0] == last and not self._is_over()

        closing = await gathering.closing(lambda: self._lost(taken), counts)
        if closing is None or not counts():
            return  # another leader's step does by now
        if closing.quarantined and not (closing.counted or closing.missing):
            raise LossDivergedError("no island has weights that are numbers any more")
        taking_part = self._taking_part(taken, closing, gathering.pseudo_gradients)
        if not closing.counted and not taking_part:  # nobody could train the next round either
            await self._services.pseudo_gradients.news(LOOK_S)
            return
        closing = without_drifted(
            self._term,
            self._board,
            self._services.machines,
            newest,
            closing,
            gathering.pseudo_gradients,
        )
        closing = await without_strangers(
            self._term,
            self._board,
            self._services.machines,
            taken,
            closing,
            gathering.pseudo_gradients,
        )
        await self._let_go(taken, gathering.pseudo_gradients)
        there = self._taking_part(taken, closing, gathering.pseudo_gradients)
        there = there or [*map(CycleId, closing.counted)]
        if not (there and counts()):  # no more, since we have looked at what there is
            return
        ended = self._times.ended(last, taken, closing, gathering.pseudo_gradients)
        open_now = [each for _, each in rounds]
        horizon = horizon_after(self._of, open_now, closing, gathering.pseudo_gradients)
        self._training = training_at(self._of, horizon)
        order = self._next(open_now, there, closing, gathering.pseudo_gradients, ended)
        received = [gathering.artifact(island) for island in closing.counted]
        islands = [started for _, started in self._islands().values()]
        fact = self._fact(order, islands, last, received)
        asked = max(step.scored_step for step in self._state.outer_branch(self._round).values())
        fact = with_decisions(self._of, fact, horizon, taken, asked)
        await self._term.record(self._times.timed(fact, gathering.pseudo_gradients))
        self._tell(order, closing)

    async def _let_go(self, taken: OuterStepTaken, received: Mapping[str, PseudoGradient]) -> None:
        """End islands that came later, are far slower than others, and that nobody asked for."""
        pinned = self._services.placement.pinned_trainers()
        begun = [started for _, started in self._islands().values()]
        islands = [started for started in begun if not pinned & {*started.nodes}]
        before = self._state.outer_branch(self._round).get(taken.parent)
        rounds = [taken.batches, *([] if before is None else [before.batches])]
        speeds = {each: report.tokens_per_s for each, report in received.items()}
        planned = self._planned()
        cycles = self._term.state.cycles
        for island in too_slow(islands, planned, rounds, speeds):
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
        islands, taken = self._islands(), rounds[0]
        speeds = self._speeds(there, taken, received)
        begun = [islands[each][1] for each in there]
        members = self._members(begun, [speeds.get(each, 0.0) for each in there])
        slowest_s = max((report.elapsed_s for report in received.values()), default=0.0)
        every = self._every_steps(begun, slowest_s / taken.steps)
        if not self._of.settings.sync_every:
            every = paced_steps(every, rounds[-1].steps, ended, taken.lag)
        before = self._state.outer_branch(self._round).get(taken.parent)
        orders, steps_before = [*map(order_of, rounds)], before.steps if before else 0
        return next_order(self._training, orders, closing, members, every, steps_before)

    def _taking_part(
        self, taken: OuterStepTaken, closing: Closing, received: Mapping[str, PseudoGradient]
    ) -> list[CycleId]:
        """Return who has a part in the next round; who is adrift begins anew first."""
        sound = self._islands().keys() - {*closing.adrift}
        return sorted(each for each in sound if self._takes_part(each, taken, received))

    def _takes_part(
        self, island: CycleId, taken: OuterStepTaken, received: Mapping[str, PseudoGradient]
    ) -> bool:
        """Say whether an island has a part in the next round: it trains, as far as we know.

        One that hasn't caught up has none: all others would wait for it, round after round.
        """
        reached = self._board.reading(island, Phase.TRAIN, OUTER_STEP)
        has_caught_up = reached is not None and reached >= taken.number
        is_at_work = self._services.pseudo_gradients.is_training(island) and has_caught_up
        return (island in received or is_at_work) and not self._is_gone(island)

    def _is_gone(self, island: CycleId) -> bool:
        _, started = self._islands()[island]
        return self._has_ended(island) or not self._services.machines.alive() & {*started.nodes}

    def _has_ended(self, island: CycleId) -> bool:
        state, _ = self._islands()[island]
        return state.failed is not None or state.wanted == STOPPED

    def _lost(self, taken: OuterStepTaken) -> list[CycleId]:
        """Return who of a round is gone just now.

        Raises:
            JupiterError: the islands have failed, all of them; it is the last one's error.
        """
        self._check_any_left()
        return [each for each in map(CycleId, taken.batches) if self._is_gone(each)]

    def _check_any_left(self) -> None:
        states = [state for state, _ in self._islands().values()]
        failed = [state.failed for state in states if state.wanted != STOPPED]
        if failed and all(failed):
            last = failed[-1]
            if last is not None:
                raise from_wire(last.code, last.message, last.hint)

    def _speeds(
        self,
        there: Sequence[CycleId],
        taken: OuterStepTaken,
        received: Mapping[str, PseudoGradient],
    ) -> Mapping[str, float]:
        """Return tokens per second of each island, as measured, or known from before."""
        known = {each: report.tokens_per_s for each, report in received.items()}
        measured = {each: speed for each, speed in known.items() if speed > 0}
        away = {*there} - taken.batches.keys()
        rounds = [
            step.batches for step in reversed([*self._state.outer_branch(self._round).values()])
        ]
        return measured | speeds_before(away, measured, rounds)

    def _members(self, islands: Sequence[TrainingStarted], speeds: Sequence[float]) -> list[Member]:
        """Return who takes part; parts are cut where a step has fewer sequences than ranks."""
        ranks = [*map(self._ranks, islands)]
        batch = self._of.plan.batch_sequences
        most = batch if sum(ranks) <= batch else max(1, batch // len(ranks))
        return [
            Member(started.cycle, min(many, most), speed)
            for started, many, speed in zip(islands, ranks, speeds, strict=True)
        ]

    def _ranks(self, started: TrainingStarted) -> int:
        machines = map(self._services.machines.hardware_of, started.nodes)
        return sum(1 if each is None else ranks_of(each, started.engine) for each in machines)

    def _planned(self) -> int:
        """Return how many islands there were at the beginning."""
        first = next(iter(self._state.outer_branch(self._round).values()), None)
        return len(read(self._of.settings.island_nodes) if first is None else first.batches)

    def _fact(
        self,
        order: OuterOrder,
        islands: Sequence[TrainingStarted],
        after: str,
        artifacts: Sequence[ArtifactId] = (),
    ) -> OuterStepTaken:
        taken = fact_of(order, self._run, after, artifacts)
        taken = replace(taken, round=self._round, start=self._of.start)
        return step_foretold(self._term, self._services.fleet_view, self._of, taken, islands)

    def _every_steps(self, islands: Sequence[TrainingStarted], step_s: float | None = None) -> int:
        """Return how many steps a round has.

        step_s: how long one took in the last round, where there was one
        """
        asked = self._of.settings.sync_every
        if asked:
            return asked
        found = [*map(_island, islands)]
        shape, plan, received = self._of.shape, self._of.plan, self._of.settings.ways
        return inner_steps_of(self._services.fleet_view, found, shape, plan, received, step_s)

    async def _finish(self, taken: OuterStepTaken) -> None:
        """Record the final checkpoint: that of the first island that has recorded its own.

        A cycle's others end soon after it: they have the same weights, and judge these now.
        """
        self._show(taken, taken, dict.fromkeys(self._islands(), TRAINING))
        self._sound_seen_s = now_s()
        while not (self._term.is_over or self._is_over()):
            self._check_any_left()
            if (made := self._last_weights()) is not None:
                await self._term.record(last_weights(self._of, made, taken))
                await self._others_end()
                return
            await self._services.pseudo_gradients.news(LOOK_S)

    def _last_weights(self) -> CheckpointCommitted | None:
        """Return the last weights of all, as the first island has recorded them.

        Those of one that was adrift may be others: they count where nobody else will record any.
        """
        line, islands = self._state.outer_branch(self._round), self._islands()
        lasts = [(each, state.last_checkpoint(ROUND)) for each, (state, _) in islands.items()]
        made = {each: last for each, last in lasts if last is not None and last.is_final}
        sound = [each for each in islands if not left_out_last(line, each, ADRIFT)]
        found = next((made[each] for each in sound if each in made), None)
        if found is not None or self._may_yet_end(sound):
            return found
        return next(iter(made.values()), None)

    def _may_yet_end(self, islands: Collection[CycleId]) -> bool:
        """Say whether any of these may yet record something: who is away often comes back."""
        going_on = [each for each in islands if not self._has_ended(each)]
        if not all(map(self._is_gone, going_on)):
            self._sound_seen_s = now_s()
        return bool(going_on) and now_s() < self._sound_seen_s + LOST_GRACE_S

    async def _others_end(self) -> None:
        """End the islands of a cycle's round, when they had a moment to do so by themselves."""
        if self._state.started is None:
            return
        until_s = now_s() + MOMENT_S
        while self._is_any_at_work() and now_s() < until_s:
            await self._services.pseudo_gradients.news(LOOK_S)
        cycles = self._term.state.cycles
        if left := stopped_in(cycles, self._run, self._round, "its round is trained"):
            await self._term.record(*left)

    def _is_any_at_work(self) -> bool:
        islands = self._islands().items()
        return any(not (state.finished or self._is_gone(each)) for each, (state, _) in islands)

    def _show_gathering(
        self, taken: OuterStepTaken, last: OuterStepTaken, gathering: OuterRoundCollection
    ) -> None:
        """Let people see where the round is, and who has come in while others are waited for."""
        many, missing = len(taken.batches), gathering.missing
        if gathering.pseudo_gradients and missing:
            text = f"outer step {last.number + 1}: {many - len(missing)} of {many} islands are in"
            self._board.explain(self._run, text)
        states = {each: self._word(each, taken, gathering) for each in self._islands()}
        self._show(taken, last, states)

    def _show(
        self, taken: OuterStepTaken, last: OuterStepTaken, states: Mapping[CycleId, str]
    ) -> None:
        step_tokens = self._of.plan.batch_sequences * self._of.shape.seq_len
        line = self._state.outer_branch(self._round)
        outer = {
            "number": last.number,
            "states": states,
            "first_step": taken.first_step,
            **shown_decisions(self._of, last),
            "tokens": last.total_tokens,
            "step_tokens": step_tokens,
            "tokens_per_s": of_all(line, NEWEST).tokens_per_s,
            "predicted_tokens_per_s": newest([*line.values()]),
        }
        self._board.note(self._run, {"outer": outer})

    def _word(self, island: CycleId, taken: OuterStepTaken, gathering: OuterRoundCollection) -> str:
        """Return what an island does just now, in a word."""
        state, _ = self._islands()[island]
        if state.failed is not None:
            return FAILED
        if self._is_gone(island):
            return AWAY
        if island in gathering.pseudo_gradients:
            return IN
        is_at_work = self._services.pseudo_gradients.is_training(island)
        return TRAINING if is_at_work and island in taken.batches else STARTING

    def _tell(self, order: OuterOrder, closing: Closing) -> None:
        left_out = {"missing": len(closing.missing), "quarantined": len(closing.quarantined)}
        left_out |= {"strangers": len(closing.strangers), "adrift": len(closing.adrift)}
        extra = {"run": self._run, "number": order.number, "counted": len(closing.counted)}
        log.info("outer_step_taken", extra=extra | left_out)
        self._board.explain(self._run, told(order.number, closing))


def told(number: int, closing: Closing) -> str:
    """Return how an outer round ended, for people."""
    others = {
        "missing": len(closing.missing),
        "left out": len(closing.quarantined),
        "not let in": len(closing.strangers),
        "adrift": len(closing.adrift),
    }
    many = len(closing.counted) + sum(others.values())
    rest = [f"{_counted(count)} {what}" for what, count in others.items() if count]
    counted = len(closing.counted)
    of_all = f"{counted} of {many} islands" if rest else _islands_in_words(counted)
    return f"outer step {number}: {', '.join([of_all, *rest])}"


def _counted(count: int) -> str:
    return "one is" if count == 1 else f"{count} are"


def _islands_in_words(count: int) -> str:
    return "one island" if count == 1 else f"{count} islands"


def _island(started: TrainingStarted) -> Island:
    return Island.of(started.engine, started.nodes)
