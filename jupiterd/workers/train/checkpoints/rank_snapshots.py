"""When a rank that trains alone copies its state into shared memory, and what it says of that.

Owns whether it does at all, and how often. Doesn't know how a copy is made (`shared_snapshots`), or
what the daemon does with it. A rank among others needs none: those that are left have the state.

params: snapshot (descriptors, run), which the daemon adds
"""

import time
from collections.abc import Mapping
from typing import Any

from jupiterd import memory_limits
from jupiterd.cycle.base.snapshot_pace import EVERY_STEPS, SnapshotPace, has_room
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import CUDA, checkpoint_bytes, memory_need
from jupiterd.protocol.frames import RankBusy
from jupiterd.protocol.shared_snapshot import Description
from jupiterd.workers.link import Task
from jupiterd.workers.train.checkpoints.checkpoint import (
    STATE_DIR,
    STATE_FILE,
    state_text,
)
from jupiterd.workers.train.checkpoints.checkpoint_format import format_of
from jupiterd.workers.train.checkpoints.rank_checkpoints import RankCheckpoints
from jupiterd.workers.train.checkpoints.shared_snapshots import SharedSnapshots
from jupiterd.workers.train.job import TrainingJob
from jupiterd.workers.training_engine import TrainingEngine

SLOW_S = 1.0
"""A copy that takes so long is told of beforehand."""

FAILED = "no more copies of the state are kept, since one failed: {}"
NO_ROOM = "no copy of the state is kept: it takes {:.1f} GB, and too little memory is free"


class RankSnapshots:
    """Those of one rank in one attempt."""

    def __init__(
        self, task: Task, job: TrainingJob, engine: TrainingEngine, checkpoints: RankCheckpoints
    ) -> None:
        self._task, self._job, self._engine = task, job, engine
        self._checkpoints = checkpoints
        given: Mapping[str, Any] | None = task.params.get("snapshot")
        is_alone = engine.world_size == 1 and "island" not in task.params
        self._given = given if is_alone else None
        self._shared: SharedSnapshots | None = None
        self._lacks_room = False
        self._pace = SnapshotPace()
        self._ended_s = time.monotonic()
        self._waited_s = 0.0
        """For a copy that isn't counted yet, after a step and before the next update."""
        self._is_slow = False
        """The last copy was."""

    @property
    def readings(self) -> Mapping[str, float]:
        """Return what is told of a step; nothing of a rank that isn't to make any."""
        if self._lacks_room:
            return {EVERY_STEPS: 0.0}
        return {} if self._shared is None else {EVERY_STEPS: float(self._pace.every_steps)}

    def after(self, step: int) -> None:
        """Copy the state after a step, where a copy is due; the round's last step has none."""
        self._pace.stepped(time.monotonic() - self._ended_s)
        if self._waited_s:
            self._pace.copied(self._waited_s)
            self._is_slow, self._waited_s = self._waited_s > SLOW_S, 0.0
        if self._given is not None and self._pace.is_due:
            self._take(self._given, step)
        self._ended_s = time.monotonic()

    def settle(self) -> None:
        """Wait until the state may change."""
        if self._shared is not None:
            began_s = time.monotonic()
            self._shared.settle()
            self._waited_s += time.monotonic() - began_s

    def _take(self, given: Mapping[str, Any], step: int) -> None:
        description = self._description(str(given["run"]), step)
        if description is None:
            return
        if self._shared is None or self._is_slow:
            self._task.send(RankBusy(step))  # else it would look as if a step hung
        shared = self._opened(given)
        if shared is None:
            return
        began_s = time.monotonic()
        try:
            shared.take(description)
        except (RuntimeError, MemoryError, OSError) as error:  # such as a GPU's full memory
            self._stop(FAILED.format(error))
            return
        self._waited_s = time.monotonic() - began_s
        self._pace.begun()

    def _stop(self, reason: str) -> None:
        """Make no more copies: training goes on without them."""
        self._given, self._shared, self._lacks_room = None, None, True
        print(reason, flush=True)  # noqa: T201 - our log

    def _opened(self, given: Mapping[str, Any]) -> SharedSnapshots | None:
        """Return the memory, which is made after the first step; None where there is no room."""
        if self._shared is None:
            size = checkpoint_bytes(self._job.shape, self._job.plan.options)
            if has_room(memory_limits.free_memory_bytes(), self._still_needed_bytes(), size):
                self._shared = _shared(given, self._engine)
            if self._shared is None:
                self._stop(NO_ROOM.format(size / 1e9))
        return self._shared

    def _still_needed_bytes(self) -> int:
        """Return what this process will take of the machine's memory, beside what it has now."""
        shape, plan, options = self._job.shape, self._job.plan, self._engine.options
        if self._engine.gpus and self._engine.device == CUDA:
            return checkpoint_bytes(shape, plan.options)
        need = memory_need(
            shape,
            plan,
            options.precision,
            gradient_checkpointing=options.gradient_checkpointing,
            device=DeviceAbilities(self._engine.name, self._engine.device, 0),
        )
        return need.total - need.weights - need.optimizer - need.program

    def _description(self, run: str, step: int) -> Description | None:
        state, best = self._checkpoints.whole_state(step), self._checkpoints.best_file(step)
        if state is None or not (best is None or best.is_relative_to(self._task.output_dir)):
            return None
        texts = format_of(self._engine).texts(self._task.inputs["tokenizer"])
        return Description(
            run=run,
            progress=self._checkpoints.progress(state),
            texts={**texts, f"{STATE_DIR}/{STATE_FILE}": state_text(state)},
            best="" if best is None else str(best.relative_to(self._task.output_dir)),
        )


def _shared(given: Mapping[str, Any], engine: TrainingEngine) -> SharedSnapshots | None:
    try:
        return SharedSnapshots([int(each) for each in given["descriptors"]], engine)
    except OSError:
        return None
