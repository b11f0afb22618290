"""The rounds of one rank of an island: inner steps, its pseudo-gradient, the outer step.

Owns what is done when, and that all ranks of the island do it together. Doesn't know how a step is
taken (`loop`), what is in a pseudo-gradient (`islands`), or who decides on outer steps: its daemon
hands them in. Whoever is behind takes those that it has missed, and drops what it has trained
meanwhile.

A round's pseudo-gradient is sent once the pseudo-gradients of the round before are merged. The next
round begins as soon as it is ordered: with the outer step that merges the pseudo-gradient
(blocking), or at once (overlapped); what the rank does beside its steps then is done in another
thread.

params: island {run, island, kind}: the run that it is an island of, its own id, how
pseudo-gradients are packed
"""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto

from jupiterd.cycle.base.positions import read
from jupiterd.cycle.training.batch_shares import Shares, shares_by_rate
from jupiterd.errors import Bug, LossDivergedError
from jupiterd.ids import short
from jupiterd.protocol.frames import (
    OuterStepArrived,
    OuterStepWanted,
    PseudoGradientWritten,
    RankBusy,
)
from jupiterd.protocol.training_values import PseudoGradient, RoundOrder
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.islands.sound_moments import sound_moments
from jupiterd.workers.link import Task
from jupiterd.workers.train.checkpoints.last_step_snapshot import LastStepSnapshot
from jupiterd.workers.train.checkpoints.rank_checkpoints import RankCheckpoints, TokenTally
from jupiterd.workers.train.island.merged_scores import MergedScores
from jupiterd.workers.train.island.pseudo_gradient_exchange import PseudoGradientExchange
from jupiterd.workers.train.job import check_batch
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.train.report.run_report import RunReport, readings

MOMENT_S = 1.0
"""How long a rank that may be behind waits for the outer step it has missed, before it trains; one
that comes later ends its round."""

SLICE_S = 0.5
"""How long a rank waits at a time before it hears how the others are: a collective isn't patient.
"""

SAVE_AFTER_S = 30.0
"""No sooner than that after the last checkpoint one of the plan's is written, whenever it was due.
Only the steps of open rounds could be lost with it, which outer steps haven't merged; where steps
are quick, writing takes more than they do."""

SAVE_AFTER_ROUNDS = 4
"""After so many one is written anyway, however soon that is: whoever begins from it takes all outer
steps since then."""


class Agreed(Enum):
    """What all ranks have agreed on."""

    ARRIVED = auto()
    """The next outer step is on the machines of all."""
    STOPPED = auto()
    """Some rank was told to stop."""
    NONE = auto()


class OuterRounds:
    """One rank's part in them."""

    def __init__(
        self,
        task: Task,
        loop: TrainingLoop,
        island: IslandView,
        checkpoints: RankCheckpoints,
        keeper: LastStepSnapshot,
        report: RunReport,
    ) -> None:
        self._task = task
        self._loop = loop
        self._engine, self._plan = loop.engine, loop.plan
        self._is_cut = loop.engine.partition is not None
        self._island = island
        self._checkpoints = checkpoints
        self._keeper = keeper
        self._report = report
        seq_len = loop.batches.shards.seq_len
        self._exchange = PseudoGradientExchange(task, loop.engine, island, seq_len)
        self._scores = MergedScores(loop.watch, island, keeper, report)
        self.step = 0
        """Inner steps that the weights contain, of all the run's."""
        self._last: StepDone | None = None
        self._is_done = not self._has_part
        """Nothing is left to do in the round that we are in."""
        self._is_sent = False
        """Our pseudo-gradient in it is."""
        self._is_behind = bool(island.orders)
        """There may be outer steps that were taken without us."""
        self._has_diverged = False
        self._trained_s, self._trained_steps = 0.0, 0
        """Of the round, by us."""
        self._saved_step = -1
        self._is_save_due = False
        """One was due, by the plan or by the clock, and isn't written yet."""
        self._saved_number, self._saved_s = max(0, self._number), -math.inf

    def run(self, step: int, tokens: int) -> None:
        """Train until the run is over or a rank is told to stop.

        step, tokens: what the weights contain

        Raises:
            StateNotFetchedError: an outer step or its pseudo-gradients can't be had.
            CorruptArtifactError: a pseudo-gradient is damaged.
        """
        self._go_on_at(step, tokens)
        while not self.is_over:
            match self._wait():
                case Agreed.ARRIVED:
                    self._report_busy()
                    self._take_outer_step()
                case Agreed.NONE:
                    self._train()
                case Agreed.STOPPED:
                    self._stop()
                    return

    @property
    def is_over(self) -> bool:
        """Say whether nothing is left to train or to merge."""
        orders = self._island.orders
        return bool(orders) and not any(each.steps for each in orders)

    @property
    def can_be_saved(self) -> bool:
        """Say whether the state is one to go on from: none of the last step is, before all meet."""
        return self.is_over or self.step < self._scores.watch.end_step

    @property
    def readings(self) -> Mapping[str, float]:
        """Return what else is told of a step."""
        return {"outer_step": self._number} if self._island.orders else {}

    @property
    def _number(self) -> int:
        return -1 if self._island.last is None else self._island.last.number

    @property
    def _after(self) -> str:
        return "" if self._island.last is None else self._island.last.step

    @property
    def _has_part(self) -> bool:
        """Say whether there is something to do in the round that we are in: nothing closed it."""
        current = self._island.current
        return current is not None and current.has_part and current in self._island.orders

    def _go_on_at(self, step: int, tokens: int) -> None:
        orders = self._island.orders
        self.step = step if self._has_part or not orders else orders[0].first_step
        self._checkpoints.tally = TokenTally(self.step, tokens, self._tokens_of_step)
        self._exchange.begin(self._after)
        if (last := self._island.last) is not None:
            self._scores.score_again(last, self.step)
        if (order := self._island.sent) is not None:
            self._send_again(order)
        self._task.send(OuterStepWanted(self._after))

    def _send_again(self, order: RoundOrder) -> None:
        """Send the last round's pseudo-gradient once more: whoever knew of it may be gone.

        Packing it gives the same again, and what is left of it.
        """
        unpacked = self._unpacked(order, order.steps)
        base, weights = self._island.state.weights, self._island.base
        if weights is base:  # it was no number
            self._exchange.send_nothing(unpacked)
        else:
            self._exchange.send(unpacked, base, weights)

    def _unpacked(
        self, order: RoundOrder, steps: int, elapsed_s: float = 0.0
    ) -> PseudoGradientWritten:
        """Return what is known of our pseudo-gradient in a round before it is packed."""
        watch = self._scores.watch
        pseudo_gradient = PseudoGradient(
            after=order.step,
            tokens=steps * order.batch_sequences * self._loop.batches.shards.seq_len,
            norm=math.inf,
            elapsed_s=elapsed_s,
            scored_step=watch.scored_step,
            held_out=watch.held_out,
            counted=self._counted_in(order, steps),
        )
        return PseudoGradientWritten(f"way-{order.number:06}", pseudo_gradient)

    def _counted_in(self, order: RoundOrder, steps: int) -> int:
        """Return how many tokens of the first steps of a round our loss counts; 0: all of them."""
        batch = order.batch_sequences
        ours = self._loop.batches.through(read(order.positions), order.first_step, batch)
        return ours.counted_in(0, steps * batch) if steps else 0

    @property
    def _tokens_of_step(self) -> int:
        order = self._island.current
        sequences = 0 if order is None else order.batch_sequences
        return sequences * self._loop.batches.shards.seq_len

    def _wait(self) -> Agreed:
        """Wait for the next outer step, as long as there is nothing else to do."""
        until_s, is_coming = time.monotonic() + self._patience_s(), False
        while True:
            self._exchange.check()
            left_s = math.inf if is_coming else max(0.0, until_s - time.monotonic())
            arrived = self._task.outer_step(self._after, min(SLICE_S, left_s))
            is_late = time.monotonic() >= until_s
            mine = [arrived is not None, self._task.stop_requested, is_late]
            here, stops, late = zip(*self._engine.gather([*map(float, mine)]), strict=True)
            is_coming = any(here)
            if any(stops):
                return Agreed.STOPPED
            if all(here):
                return Agreed.ARRIVED
            if late[0] and not (is_coming and self._is_due):
                return Agreed.NONE
            self._report_waiting()

    def _patience_s(self) -> float:
        if self._must_wait:
            return math.inf
        return MOMENT_S if self._is_behind else 0.0

    @property
    def _must_wait(self) -> bool:
        """Say whether there is nothing to do before the next outer step."""
        if self._is_done:
            return self._island.next is None
        return self._is_round_over and not self._can_send

    @property
    def _is_due(self) -> bool:
        """Say whether an outer step that comes now is waited for by all ranks."""
        last, current = self._island.last, self._island.current
        if self._must_wait or self._is_behind or last is None or current is None:
            return True
        return not self._is_done and last.closes + 1 >= current.number

    @property
    def _is_round_over(self) -> bool:
        """Say whether no step is left of the round that we are in."""
        return self._has_diverged or self.step == self._order.end_step

    @property
    def _can_send(self) -> bool:
        """Say whether the round before ours is merged: ours is measured from there."""
        last = self._island.last
        return last is not None and last.closes >= self._order.number - 1

    @property
    def _order(self) -> RoundOrder:
        if self._island.current is None:
            raise Bug("an island was to train without an order")
        return self._island.current

    def _report_waiting(self) -> None:
        """Tell that no step comes to its end for a while, and that nothing is wrong with that."""
        last = {} if self._last is None else readings(self._last, self._engine.rank)
        values = {**last, **self.readings, "step": self.step, "waiting": 1.0}
        steps = self._scores.watch.expected_steps(self.step)
        self._task.progress(self.step, steps, "steps", **values)

    def _report_busy(self) -> None:
        """Tell that something else than a step comes next."""
        self._task.send(RankBusy(self.step))

    def _take_outer_step(self) -> None:
        """Take the outer step that has arrived, and go on with what we were at if that is open."""
        arrived = self._arrived()
        state, digest = self._exchange.merged(arrived)
        order = arrived.order
        was_cut_off = not self._is_done and self._closes_ours(arrived)
        self._is_done |= was_cut_off
        goes_on = not (self._is_done or self._has_diverged)
        with self._keeper.jumping(self.step):
            self._island.take(state, order, is_counted=arrived.is_counted, goes_on=goes_on)
        self._report.outer_step(
            order.number, short(order.step), digest, len(arrived.pseudo_gradients)
        )
        self._exchange.begin(order.step, digest, is_compared=arrived.is_compared)
        self._is_behind |= not (goes_on or self._is_sent)
        if self._is_done and self._has_diverged:
            self._fall_back()
        self._scores.take_up(arrived, self.step)
        self._task.send(OuterStepWanted(self._after))
        if self._is_done and self._island.next is None:
            self._jump(self._island.orders[0])
        if self.is_over:
            self._scores.end()
        if self.is_over and (self._engine.rank == 0 or self._is_cut):
            self._save(must_be_saved=True)

    def _arrived(self) -> OuterStepArrived:
        arrived = self._task.outer_step(self._after)
        if arrived is None:
            raise Bug("an outer step has gone again")
        return arrived

    def _closes_ours(self, arrived: OuterStepArrived) -> bool:
        current = self._island.current
        return current is not None and arrived.order.closes >= current.number

    def _train(self) -> None:
        """Take the inner steps that are left of the round, or as many as there is time for."""
        self._is_behind = False
        if self._is_done:
            self._begin_round()
        if not self._is_round_over:
            self._take_steps()
        if self._is_round_over and self._can_send:
            self._end_round()

    def _begin_round(self) -> None:
        order = self._island.next
        if order is None:
            raise Bug("an island was to begin a round that nobody has ordered")
        check_batch(order.batch_sequences, self._engine.world_size)
        with self._keeper.jumping(order.first_step):
            self._island.begin(order)
            self._count_from(order)
        self._is_done = self._is_sent = False
        self._trained_s, self._trained_steps = 0.0, 0
        is_due = self._may_save or self._number - self._saved_number >= SAVE_AFTER_ROUNDS
        if self._last is not None and self._saves(is_due=is_due):
            self._save()

    def _jump(self, order: RoundOrder) -> None:
        """Count on from the beginning of a round, wherever we are."""
        with self._keeper.jumping(order.first_step):
            self._count_from(order)

    def _count_from(self, order: RoundOrder) -> None:
        tally = self._checkpoints.tally
        self._checkpoints.tally = tally.jumped(self.step, order.first_step, self._tokens_of_step)
        self.step = order.first_step

    def _take_steps(self) -> None:
        began_s, first_step = time.monotonic(), self.step
        self._checkpoints.ramp.begin(self._engine, first_step, self._order.end_step)
        try:
            self._loop_of(self._order).run(first_step)
        except LossDivergedError as error:
            print(error.message, flush=True)  # noqa: T201 - our log
            self._has_diverged = True
        self._trained_s += time.monotonic() - began_s
        self._trained_steps += self.step - first_step

    def _loop_of(self, order: RoundOrder) -> TrainingLoop:
        loop, batch = self._loop, order.batch_sequences
        return replace(
            loop,
            batches=loop.batches.through(read(order.positions), order.first_step, batch),
            end_step=order.end_step,
            shares=self._shares(batch),
            stop_requested=self._is_interrupted,
            wants_pause=self._has_merged,
            step_done=self._step_done,
            rate_factor=self._checkpoints.ramp.factor,
        )

    def _shares(self, batch: int) -> Shares | None:
        """Return shares as those of the round before; none of them is measured anew for that."""
        return None if self._last is None else shares_by_rate(batch, self._last.shares)

    def _is_interrupted(self) -> bool:
        """Say whether to stop, or whether the others have ended the round without us."""
        arrived = self._task.outer_step(self._after)
        return self._task.stop_requested or (arrived is not None and self._closes_ours(arrived))

    def _has_merged(self) -> bool:
        """Say whether an outer step has arrived and is worked out."""
        arrived = self._task.outer_step(self._after)
        return arrived is not None and self._exchange.merging(arrived).done()

    def _step_done(self, done: StepDone) -> None:
        self.step, self._last = done.step, done
        self._loop.step_done(done)
        is_of_plan = done.step % self._plan.checkpoint_every_steps == 0
        self._is_save_due |= is_of_plan or self._checkpoints.is_due
        ends_round = (
            self.step == self._order.end_step
        )  # others wait for our pseudo-gradient before that
        if not ends_round and self._saves(is_due=self._may_save):
            self._save()

    def _saves(self, *, is_due: bool) -> bool:
        """Say whether this rank writes one: the first does, or all do where each holds a part.

        is_due: by this rank's clock; the first one's counts
        """
        if not self._is_cut:
            return is_due and self._engine.rank == 0
        return bool(self._engine.gather([float(is_due)])[0][0])

    @property
    def _may_save(self) -> bool:
        """Say whether one that is due may be written; one that found no room isn't waited for."""
        is_time = time.monotonic() - self._saved_s >= SAVE_AFTER_S
        return self._is_save_due and (is_time or not self._checkpoints.has_room)

    def _end_round(self) -> None:
        """Send our pseudo-gradient from rank 0; every rank packs it while training goes on."""
        self._report_waiting()
        order, base, weights = self._order, self._island.base, self._island.end()
        self._has_diverged |= not self._island.held.all_are_numbers(
            weights
        )  # the last step may have, unnoticed
        self._is_done = self._is_sent = True
        done, steps = self._trained_steps, self.step - order.first_step
        elapsed_s = self._trained_s * steps / done if done else 0.0
        unpacked = self._unpacked(order, steps, elapsed_s)
        if self._has_diverged:
            self._exchange.send_nothing(unpacked)
            self._fall_back()
        else:
            self._exchange.send(unpacked, base, weights)

    def _fall_back(self) -> None:
        """Go on from the weights of all, and with moments that are numbers."""
        sound = sound_moments(self._engine)
        with self._keeper.jumping(self.step):
            self._engine.load_moments(sound, self.step)
            self._island.fall_back()  # last: of bf16 weights the moments have a part
            self._checkpoints.ramp.forget()
        self._has_diverged = False

    def _stop(self) -> None:
        """Write a checkpoint on each machine: nobody waits for a copy of another's then."""
        has_trained = self._last is not None and not self._has_diverged
        is_first_here = not int(self._task.params.get("local_rank", 0))
        if has_trained and self.can_be_saved and (is_first_here or self._is_cut):
            self._save(must_be_saved=self._is_cut or self._engine.rank == 0)

    def _save(self, *, must_be_saved: bool = False) -> None:
        if self.step != self._saved_step:
            self._report_busy()
            if self._is_cut:
                self._checkpoints.write_part(self.step, must_be_saved=must_be_saved)
            else:
                self._checkpoints.write(self.step, must_be_saved=must_be_saved)
            self._saved_step, self._saved_number = self.step, self._number
            self._saved_s, self._is_save_due = time.monotonic(), False
