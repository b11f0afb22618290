"""The rounds of one rank of an island: inner steps, its way, the outer step with those of all.

Owns what is done when, and that all ranks of the island do it together. Doesn't know how a step is
taken (`loop`), what is in a way (`islands`), or who decides on outer steps: its daemon hands them
in. Whoever is behind takes those that it has missed, and drops what it has trained meanwhile.

params: island {run, island, kind}: the run that it is an island of, its own id, how ways are packed
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path

import numpy as np

from jupiterd.cycle.shares import Shares, shares_by_rate
from jupiterd.errors import Bug, LossDivergedError
from jupiterd.frames import OuterStepArrived, OuterStepWanted, WayWritten
from jupiterd.ids import short
from jupiterd.workers.islands.fixed_batch import FixedBatch
from jupiterd.workers.islands.island import Island, length
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.islands.packing import Packed
from jupiterd.workers.islands.round_order import RoundOrder
from jupiterd.workers.islands.way_file import read_way, write_way
from jupiterd.workers.link import Task
from jupiterd.workers.train.job import check_batch
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.train.rank_checkpoints import RankCheckpoints, Tally
from jupiterd.workers.train.run_report import RunReport, readings
from jupiterd.workers.train.state_keeper import StateKeeper

MOMENT_S = 1.0
"""How long a rank that may be behind waits for the outer step it has missed, before it trains; one
that comes later ends its round."""

SLICE_S = 0.5
"""How long a rank waits at a time before it hears how the others are: a collective isn't patient.
"""

CHECKPOINT_EVERY_ROUNDS = 4


class News(Enum):
    """What all ranks have agreed on."""

    ARRIVED = auto()
    """The next outer step is on the machines of all."""
    STOPPED = auto()
    """Some rank was told to stop."""
    NONE = auto()


class IslandRounds:
    """One rank's part in them."""

    def __init__(
        self,
        task: Task,
        loop: TrainingLoop,
        island: Island,
        checkpoints: RankCheckpoints,
        keeper: StateKeeper,
        report: RunReport,
    ) -> None:
        self._task = task
        self._loop = loop
        self._engine, self._plan = loop.engine, loop.plan
        self._island = island
        self._checkpoints = checkpoints
        self._keeper = keeper
        self._report = report
        self._fixed_batch = FixedBatch(loop.engine, loop.batches.shards.seq_len)
        self.step = 0
        """Inner steps that the weights contain, of all the run's."""
        self._last: StepDone | None = None
        self._is_trained = False
        """The round's inner steps are done, and our way is on its way."""
        self._is_behind = island.order is not None
        """There may be outer steps that were taken without us."""
        self._has_diverged = False
        self._saved_step = -1
        self._is_save_due = False
        """Since the end of the round."""
        self._saved_number = max(0, self._number)

    def run(self, step: int, tokens: int) -> None:
        """Train until the run is over or a rank is told to stop.

        step, tokens: what the weights contain

        Raises:
            StateNotFetchedError: an outer step or its ways can't be had.
            CorruptArtifactError: a way is damaged.
        """
        self._go_on_at(step, tokens)
        while not self.is_over:
            match self._wait():
                case News.ARRIVED:
                    self._take_outer_step()
                case News.NONE:
                    self._train()
                case News.STOPPED:
                    self._stop()
                    return

    @property
    def is_over(self) -> bool:
        """Say whether the last outer step has been taken."""
        return self._island.order is not None and self._island.order.is_over

    @property
    def can_be_kept(self) -> bool:
        """Say whether the state is one to go on from: none of the last step is, before all meet."""
        return self.is_over or self.step < self._plan.steps

    @property
    def readings(self) -> Mapping[str, float]:
        """Return what else is told of a step."""
        return {} if self._island.order is None else {"outer_step": self._number}

    @property
    def _number(self) -> int:
        return -1 if self._island.order is None else self._island.order.number

    @property
    def _after(self) -> str:
        return "" if self._island.order is None else self._island.order.step

    def _go_on_at(self, step: int, tokens: int) -> None:
        order = self._island.order
        has_part = order is None or order.batch_sequences
        self.step = step if order is None or has_part else order.first_step
        self._checkpoints.tally = Tally(self.step, tokens, self._tokens_of_step)
        self._fixed_batch.pass_through(self._after, self._island.begun)
        self._task.send(OuterStepWanted(self._after))

    @property
    def _tokens_of_step(self) -> int:
        order = self._island.order
        sequences = 0 if order is None else order.batch_sequences
        return sequences * self._loop.batches.shards.seq_len

    def _wait(self) -> News:
        """Wait for the next outer step, as long as there is nothing else to do."""
        until_s, is_coming = time.monotonic() + self._patience_s(), False
        while True:
            left_s = math.inf if is_coming else max(0.0, until_s - time.monotonic())
            arrived = self._task.outer_step(self._after, min(SLICE_S, left_s))
            is_late = time.monotonic() >= until_s
            mine = [arrived is not None, self._task.stop_requested, is_late]
            here, stops, late = zip(*self._engine.gather([*map(float, mine)]), strict=True)
            is_coming = any(here)
            if any(stops):
                return News.STOPPED
            if all(here):
                return News.ARRIVED
            if late[0] and not is_coming:
                return News.NONE
            self._tell_waiting()

    def _patience_s(self) -> float:
        order = self._island.order
        if order is None or not order.batch_sequences or self._is_trained:
            return math.inf
        return MOMENT_S if self._is_behind else 0.0

    def _tell_waiting(self) -> None:
        """Tell that no step comes to its end for a while, and that nothing is wrong with that."""
        last = {} if self._last is None else readings(self._last)
        values = {**last, **self.readings, "step": self.step, "waiting": 1.0}
        self._task.progress(self.step, self._plan.steps, "steps", **values)

    def _take_outer_step(self) -> None:
        arrived = self._task.outer_step(self._after)
        if arrived is None:
            raise Bug("an outer step has gone again")
        order = RoundOrder.of(arrived, str(self._task.params["island"]["island"]))
        settings = OuterSettings(arrived.rate, arrived.momentum)
        state = self._island.merged(self._ways(arrived), arrived.tokens, settings)
        with self._keeper.jumping(order.first_step):
            self._island.take(state, order, is_counted=arrived.is_counted)
            tally = self._checkpoints.tally
            self._checkpoints.tally = tally.jumped(
                self.step, order.first_step, self._tokens_of_step
            )
            self.step = order.first_step
        digest, ways = self._island.digest(), len(arrived.ways)
        self._report.outer_step(order.number, short(order.step), digest, ways)
        self._fixed_batch.pass_through(order.step, self._island.begun)
        self._begin_round()

    def _ways(self, arrived: OuterStepArrived) -> Iterator[Packed]:
        """Yield the ways of all, one in memory at a time."""
        size = self._island.layout.size
        return (read_way(Path(folder), size) for folder in arrived.ways)

    def _begin_round(self) -> None:
        self._is_behind, self._is_trained = not self._is_trained, False
        if self._has_diverged:
            self._forget_broken_moments()
        self._task.send(OuterStepWanted(self._after))
        is_due = self._is_save_due or self._number - self._saved_number >= CHECKPOINT_EVERY_ROUNDS
        self._is_save_due = False
        if self._engine.rank == 0 and (self.is_over or (is_due and self._last is not None)):
            self._save(must_be_saved=self.is_over)

    def _forget_broken_moments(self) -> None:
        moments = self._engine.moments()
        sound = {
            name: values if np.isfinite(values).all() else np.zeros_like(values)
            for name, values in moments.items()
        }
        self._engine.load_moments(sound, self.step)
        self._checkpoints.ramp.forget()
        self._has_diverged = False

    def _train(self) -> None:
        """Take the inner steps that are left of the round, or as many as there is time for."""
        order = self._island.order
        if order is None:
            raise Bug("an island was to train without an order")
        check_batch(order.batch_sequences, self._engine.world_size)
        first_step, began_s = self.step, time.monotonic()
        self._checkpoints.ramp.begin(self._engine, first_step, order.end_step)
        try:
            self._loop_of(order).run(first_step)
        except LossDivergedError as error:
            print(error.message, flush=True)  # noqa: T201 - our log
            self._has_diverged = True
        if self._has_diverged or self.step == order.end_step:
            done = self.step - first_step
            elapsed_s = (time.monotonic() - began_s) * order.steps / done if done else 0.0
            self._send_way(order, elapsed_s)

    def _loop_of(self, order: RoundOrder) -> TrainingLoop:
        loop, batch = self._loop, order.batch_sequences
        return replace(
            loop,
            batches=loop.batches.through(order.ranges, order.first_step, batch),
            end_step=order.end_step,
            shares=self._shares(batch),
            stop_requested=self._is_interrupted,
            step_done=self._step_done,
            rate_factor=self._checkpoints.ramp.factor,
        )

    def _shares(self, batch: int) -> Shares | None:
        """Return shares as those of the round before; none of them is measured anew for that."""
        return None if self._last is None else shares_by_rate(batch, self._last.shares)

    def _is_interrupted(self) -> bool:
        """Say whether to stop, or whether the others have ended the round without us."""
        return self._task.stop_requested or self._task.outer_step(self._after) is not None

    def _step_done(self, done: StepDone) -> None:
        self.step, self._last = done.step, done
        self._loop.step_done(done)
        is_due = done.step % self._plan.checkpoint_every_steps == 0
        if is_due and self._engine.rank == 0:
            self._save_in_time()

    def _save_in_time(self) -> None:
        """Save now, or after the outer step at the end of a round: others wait for our way then."""
        order = self._island.order
        if order is not None and self.step == order.end_step:
            self._is_save_due = True
        else:
            self._save()

    def _send_way(self, order: RoundOrder, elapsed_s: float) -> None:
        """Pack our way on every rank, and send it from rank 0."""
        self._tell_waiting()
        way = self._island.way()
        norm = math.inf if self._has_diverged else length(way)
        self._has_diverged = not math.isfinite(norm)  # the last step may have done that, unnoticed
        packed = None if self._has_diverged else self._island.packed(way)
        self._is_trained = True
        if self._engine.rank == 0:
            name = f"way-{order.number:06}"
            write_way(self._task.output_dir / name, packed)
            tokens = (self.step - order.first_step) * self._tokens_of_step
            logits = self._fixed_batch.logits_at(order.step)
            self._task.send(WayWritten(name, order.step, tokens, norm, elapsed_s, logits))

    def _stop(self) -> None:
        """Write a checkpoint on each machine: nobody waits for a copy of another's then."""
        has_trained = self._last is not None and not self._has_diverged
        if has_trained and self.can_be_kept and not int(self._task.params.get("local_rank", 0)):
            self._save(must_be_saved=self._engine.rank == 0)

    def _save(self, *, must_be_saved: bool = False) -> None:
        if self.step != self._saved_step:
            self._checkpoints.write(self.step, must_be_saved=must_be_saved)
            self._saved_step, self._saved_number = self.step, self._number
