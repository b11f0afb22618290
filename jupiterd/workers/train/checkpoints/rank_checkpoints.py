"""What one rank writes down of its training: checkpoints, and the states that are asked for.

Owns what is in them, who is told, and how long ago the last one was. Doesn't know which steps one
is due after.

params: checkpoint_every_s (this machine's setting; 0: none), members, island
"""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jupiterd.cycle.training.horizon import Horizon, is_on_trunk
from jupiterd.cycle.training.memory import checkpoint_bytes
from jupiterd.cycle.training.save_clock import SaveClock, joint_interval_s, save_interval_s
from jupiterd.errors import Bug
from jupiterd.protocol.frames import CheckpointUnsaved, CheckpointWritten
from jupiterd.protocol.training_values import TrainingProgress
from jupiterd.workers.disk_room import is_out_of_room
from jupiterd.workers.link import Task
from jupiterd.workers.train.checkpoints.checkpoint import (
    TrainingSnapshot,
    TrainingState,
    snapshot,
    write,
)
from jupiterd.workers.train.checkpoints.checkpoint_saver import CheckpointSaver
from jupiterd.workers.train.checkpoints.part_writer import OuterPieces, PartWriter
from jupiterd.workers.train.held_out.held_out_monitor import HeldOutMonitor
from jupiterd.workers.train.island.learning_rate_ramp import LearningRateRamp
from jupiterd.workers.train.job import TrainingJob
from jupiterd.workers.training_engine import Tensors, TrainingEngine


class OuterPart(OuterPieces, Protocol):
    """What an island's state has beyond that of ordinary training."""

    def place(self) -> Mapping[str, Any] | None:
        """Return its order since the last outer step; None before the first one."""
        ...

    def tensors(self) -> Tensors:
        """Return what its outer loop keeps."""
        ...


@dataclass(frozen=True)
class TokenTally:
    """How many tokens were trained on along the line, after each step from one on."""

    step: int
    tokens: int
    """After that step."""
    tokens_per_step: int

    def at(self, step: int) -> int:
        """Return how many, after so many steps."""
        return self.tokens + (step - self.step) * self.tokens_per_step

    def jumped(self, step: int, to_step: int, tokens_per_step: int) -> "TokenTally":
        """Return the tally where one step is followed by a later one, and none between them."""
        return TokenTally(to_step, self.at(step), tokens_per_step)


class RankCheckpoints:
    """Those of one rank in one attempt."""

    def __init__(
        self, task: Task, job: TrainingJob, engine: TrainingEngine, tally: TokenTally
    ) -> None:
        self._task = task
        self._job = job
        self._engine = engine
        self._saver = CheckpointSaver(task.inputs["tokenizer"])
        is_cut = engine.partition is not None
        self._parts = PartWriter(engine, task.inputs["tokenizer"]) if is_cut else None
        self.tally = tally
        self.steps_before = 0
        """Steps that the optimizer had taken when the round began."""
        self.outer: OuterPart | None = None
        self.ramp = LearningRateRamp()
        self.watch: HeldOutMonitor | None = None
        """What is decided by losses on held-out text goes with each of them."""
        self.loss = float(task.params.get("from_loss", 0.0))
        """The one that is known last; the step that is kept may have none yet."""
        start = task.inputs.get("checkpoint")
        self.last_good = "none" if start is None else start.name
        """What people are told of."""
        interval_s = joint_interval_s(0.0) if is_cut else _interval_s(task, job)
        self._clock = SaveClock(interval_s, time.monotonic())
        self.has_room = True
        """The last one didn't fail for want of room."""

    def check(self) -> None:
        """Raise what went wrong while one was written, if anything did."""
        self._saver.check()

    def wait(self) -> None:
        """Wait until everything is written; raises what went wrong."""
        self._saver.wait()

    @property
    def is_due(self) -> bool:
        """Say whether so much time has passed since the last one that another is due."""
        return self._clock.is_due(time.monotonic())

    def write(self, step: int, *, must_be_saved: bool = False) -> None:
        """Write a checkpoint in the background.

        must_be_saved: a disk without room for it is an error
        """
        self._saver.wait()  # two copies of everything would be there at once
        self._clock.saved(time.monotonic())
        taken = self._snapshot(step)
        written = CheckpointWritten(f"checkpoint-{step:08}", self._progress(taken))
        self._saver.save(
            taken,
            self._task.output_dir / written.path,
            lambda: self._written(written),
            None if must_be_saved else lambda: self._unsaved(step),
        )

    def write_part(self, step: int, *, must_be_saved: bool = False) -> None:
        """Write this rank's part, where a model is cut over the ranks: all write after one step.

        must_be_saved: a disk without room for it is an error
        """
        name = f"part-{step:08}"
        best, state = self.best_file(step), self._state(step)
        is_best = self._takes_over(step, best)
        if is_best:
            state = replace(state, on_trunk=False)
        if self._parts is None:
            raise Bug("a rank that holds everything has no part")
        try:
            with self._waiting():
                folder = self._task.output_dir / name
                self._parts.write(state, folder, best, self.outer, takes_over=is_best)
        except OSError as error:
            if must_be_saved or not is_out_of_room(error):
                raise
            self._unsaved(step)
        else:
            self._written(CheckpointWritten(name, self.progress(state, is_best=is_best)))

    def _takes_over(self, step: int, best: Path | None) -> bool:
        """Say whether the best weights take the place of the last step's: the first rank decides.

        One process of each machine has their file, and a disk may have been full.
        """
        is_last = self.watch is not None and step >= self.watch.end_step
        has_them = float(best is not None)
        return is_last and bool(self._engine.gather([has_them])[0][0])

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Note how long training waits: so rarely is the next one due."""
        began_s = time.monotonic()
        try:
            yield
        finally:
            self._clock.saved(now_s := time.monotonic())
            self._clock.took(now_s - began_s)

    def save_now(self, step: int) -> CheckpointWritten | None:
        """Write the state as it is, and return once it is written; None: it is no whole one.

        It isn't synced: whoever takes it in syncs it to the disk.
        """
        if self._lacks_best(step):
            return None
        taken = self._snapshot(step)
        if not _are_numbers(taken.weights):
            return None
        name = f"kept-{step:08}"
        folder, tokenizer = self._task.output_dir / name, self._task.inputs["tokenizer"]
        write(taken, folder, tokenizer, is_synced=False)
        return CheckpointWritten(name, self._progress(taken))

    def whole_state(self, step: int) -> TrainingState | None:
        """Return how far training is after a step before the last one; None where that isn't known.

        The weights of the last step may give way to better ones.
        """
        is_last = self.watch is not None and step >= self.watch.end_step
        return None if is_last or self._lacks_best(step) else self._state(step)

    def best_file(self, step: int) -> Path | None:
        """Return the file of the best weights so far, where they aren't those of a step."""
        return None if self.watch is None else self.watch.best_file(step)

    def progress(self, state: TrainingState, *, is_best: bool = False) -> TrainingProgress:
        """Return what is told of a state; is_best: its weights are the best there were."""
        horizon = self._horizon(state.step, is_best=is_best).to_plain()
        return TrainingProgress(state.step, state.tokens, state.cursor, self.loss, horizon)

    def _progress(self, taken: TrainingSnapshot) -> TrainingProgress:
        return self.progress(taken.state, is_best=taken.is_best)

    def _snapshot(self, step: int) -> TrainingSnapshot:
        """Copy what there is; of the last step, the best weights that there were."""
        tensors = None if self.outer is None else self.outer.tensors()
        taken = snapshot(self._engine, self._state(step), tensors)
        best = None if self.watch is None else self.watch.best_file(step)
        if best is None or self.watch is None:
            return taken
        if step < self.watch.end_step:
            return replace(taken, best=best)
        state = replace(taken.state, on_trunk=False)
        shapes = {name: values.shape for name, values in taken.weights.items()}
        weights = taken.form.read_file(best, shapes)
        return replace(taken, weights=weights, state=state, is_best=True)

    def _lacks_best(self, step: int) -> bool:
        return self.watch is not None and self.watch.lacks_best(step)

    def _horizon(self, step: int, *, is_best: bool) -> Horizon:
        """Return what is told: at the end the best step is the one whose weights are there."""
        horizon = Horizon() if self.watch is None else self.watch.horizon
        is_other = self.watch is not None and step >= self.watch.end_step and not is_best
        if is_other and horizon.has_best and horizon.best_step != step:
            return replace(horizon, best_step=horizon.step, best_loss=horizon.loss)
        return horizon

    def _state(self, step: int) -> TrainingState:
        plan = self._job.plan
        horizon = Horizon() if self.watch is None else self.watch.horizon
        return TrainingState(
            round=self._job.round,
            step=step,
            tokens=self.tally.at(step),
            cursor=step * plan.batch_sequences,
            plan_hash=plan.hash(),
            model_hash=self._job.shape.architecture_hash(),
            rng=self._engine.random_state(),
            outer=None if self.outer is None else self.outer.place(),
            ramp=self.ramp.at(step),
            on_trunk=is_on_trunk(plan, horizon, step),
            steps_before=self.steps_before,
        )

    def _written(self, written: CheckpointWritten) -> None:
        self.last_good, self.has_room = written.path, True
        self._task.checkpoint_written(written)

    def _unsaved(self, step: int) -> None:
        self.has_room = False
        where = f"the disk of rank {self._engine.rank}'s machine has no room"
        self._task.send(CheckpointUnsaved(step, f"{where} for the checkpoint of step {step}"))


def _interval_s(task: Task, job: TrainingJob) -> float:
    """Return how much time may pass between two; ranks of one machine have nobody beside them."""
    is_alone = len(set(task.params.get("members", ()))) < 2 and "island" not in task.params
    asked_s = float(task.params.get("checkpoint_every_s") or 0.0)
    return save_interval_s(
        checkpoint_bytes(job.shape, job.plan.options), asked_s, is_alone=is_alone
    )


def _are_numbers(weights: Tensors) -> bool:
    return all(bool(np.isfinite(values.sum())) for values in weights.values())
