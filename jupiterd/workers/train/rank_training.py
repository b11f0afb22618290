"""One rank's training, from the first step of its attempt to the last, on any engine.

Owns how the parts work together: where training starts, when a checkpoint is due, what is reported
to the daemon. Doesn't know how an engine computes a step, or who the other ranks are.

inputs: shards, tokenizer, checkpoint or weights (optional), holdout.N (optional); where an adapter
is trained: weights (frozen), adapter (optional)
params: shape, plan, round, island (see `outer_rounds`), is_tuning (somebody brought the weights:
their held-out loss is measured before the first step), and what the engine's rank module names
A checkpoint of the same round is continued exactly. One of an earlier round gives its weights; one
on the trunk gives its optimizer moments and learning rate, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from jupiterd import __version__
from jupiterd.cycle.training.config_agreement import Agreement
from jupiterd.cycle.training.held_out_measures import sequences_to_score
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.errors import (
    ConflictError,
    CorruptArtifactError,
    CorruptCheckpointError,
    CorruptWeightsError,
    LossDivergedError,
    StateNotFetchedError,
)
from jupiterd.protocol.frames import CheckpointWritten, RankBusy, TaskFinished
from jupiterd.protocol.preparing_stage import COMPILING, FIRST_STEP
from jupiterd.versions import first_of_series
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.link import Task
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.catch_up_rank import CatchUpRank
from jupiterd.workers.train.checkpoints.best_weights import BestWeights
from jupiterd.workers.train.checkpoints.checkpoint import (
    TrainingState,
    load_adapter,
    load_base,
    load_moments,
    load_state,
    load_weights,
)
from jupiterd.workers.train.checkpoints.last_step_snapshot import LastStepSnapshot
from jupiterd.workers.train.checkpoints.rank_checkpoints import RankCheckpoints, TokenTally
from jupiterd.workers.train.checkpoints.rank_snapshots import RankSnapshots
from jupiterd.workers.train.config_agreement import agree
from jupiterd.workers.train.held_out.held_out_monitor import HeldOutMonitor
from jupiterd.workers.train.held_out.outer_monitor import OuterMonitor
from jupiterd.workers.train.held_out.validation import Validation
from jupiterd.workers.train.island.learning_rate_ramp import LearningRateRamp
from jupiterd.workers.train.island.outer_rounds import OuterRounds
from jupiterd.workers.train.island.saved_island import SavedIsland, load_island
from jupiterd.workers.train.job import TrainingJob
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.train.micro_batch_probe import MicroBatchProbe, ProbeSetup
from jupiterd.workers.train.report.run_report import (
    Curves,
    RunReport,
    course_of,
    held_out_readings,
    readings,
)
from jupiterd.workers.train.weight_sync import WeightSync
from jupiterd.workers.training_engine import TrainingEngine, digest

FROM_FILES: Final = frozenset({"checkpoint", "weights", "adapter"})
"""Inputs with weights that all ranks read alike."""


@dataclass(frozen=True)
class Start:
    """Where this attempt begins."""

    step: int
    tokens: int
    """Tokens trained on along the line by then."""
    place: Mapping[str, Any] | None = None
    """Of an island: its order since the last outer step."""
    ramp: Sequence[int] = ()
    """Of an island whose learning rate is being raised, see `LearningRateRamp`."""
    is_fresh: bool = False
    """The optimizer has never taken a step."""
    steps_before: int = 0
    """Steps that the optimizer had taken when the round began."""


class RankTraining:
    """The training of one job by one rank."""

    def __init__(self, task: Task, job: TrainingJob, engine: TrainingEngine) -> None:
        self._task = task
        self._job = job
        self._plan = job.plan
        self._engine = engine
        if engine.adapter is not None:
            self._load_base(task.inputs["weights"])
        self._late_ranks = frozenset(map(int, task.params.get("late_ranks", ())))
        """Those whose state is fetched while the others train."""
        is_late = engine.rank in self._late_ranks
        self._are_loaded = is_late or not FROM_FILES.isdisjoint(task.inputs)
        """The first weights come from files."""
        self._start = (
            Start(int(task.params["from_step"]), 0)
            if is_late
            else self._begin(task.inputs.get("checkpoint"))
        )
        self._is_cut = engine.partition is not None
        """No rank holds all that is trained."""
        self._passes_together = self._is_cut or engine.base_partition is not None
        """No rank passes a batch through without the others."""
        self._micro_batch = self._chosen_micro_batch(is_late=is_late)
        """Sequences that this rank holds at a time."""
        self._together = self._micro_batches_of_all()
        self._late = CatchUpRank(engine, task, self._arrived, is_late=is_late)
        self._last: StepDone | None = None
        self._trained_steps = 0
        self._checkpoints = RankCheckpoints(task, job, engine, self._tally())
        self._checkpoints.steps_before = self._start.steps_before
        self._sync = WeightSync(engine, self._start.step)
        shards = job.shards
        self._course = course_of(job.shape, job.plan, self._micro_batch, shards.sequences)
        self._validation = Validation(
            task.inputs_named("holdout"),
            task.inputs["tokenizer"],
            shards.seq_len,
            sequences_to_score(shards.sequences),
            self._micro_batch,
            documents_apart=engine.options.documents_apart,
        )
        self._validation.loss_on = shards.index.loss_on
        self._validation.together = self._together
        self._watch = self._new_watch(shards.sequences)
        self._watch.report_busy = self._report_busy
        self._checkpoints.watch = self._watch
        self._report = self._new_report()
        self._rounds: OuterRounds | None = None
        self._keeper = LastStepSnapshot(self._start.step, self._save_now)
        self._snapshots = RankSnapshots(task, job, engine, self._checkpoints)
        self._keeper.before_update = self._snapshots.settle
        engine.updating = self._keeper.updating
        task.save_state = self._keeper.save

    def run(self) -> TaskFinished:
        """Train to the end of the round, or until told to stop; say what was done."""
        if self._engine.world_size > 1:  # reading all weights for it takes a while
            agree(self._engine, self._agreement(), list(self._task.params.get("members", ())))
        self._engine.begin(has_same_weights=self._are_loaded)
        self._task.lingers = self._engine.world_size > 1
        batches = RankBatches(
            shards=self._job.shards,
            seed=f"{self._plan.seed}/round {self._job.round}",
            batch_sequences=self._plan.batch_sequences,
            micro_batch_sequences=self._micro_batch,
            rank=self._engine.rank,
            world_size=self._engine.world_size,
            documents_apart=self._engine.options.documents_apart,
            together=self._together,
            has_dropout=self._engine.adapter is not None and self._engine.adapter.dropout > 0,
        )
        loop = TrainingLoop(
            engine=self._engine,
            plan=self._plan,
            batches=batches,
            stop_requested=lambda: self._task.stop_requested,
            step_done=self._step_done,
            late=self._late,
            late_ranks=self._late_ranks,
            watch=self._watch,
        )
        try:
            with self._report:
                self._train(loop)
        except LossDivergedError as error:
            self._checkpoints.wait()
            message = f"{error.message}; the last good checkpoint is {self._checkpoints.last_good}"
            raise LossDivergedError(message, error.hint) from error
        finally:
            self._checkpoints.wait()
        return self._finished()

    def _train(self, loop: TrainingLoop) -> None:
        if self._task.params.get("is_tuning") and not self._goes_on:
            self._measure_initial()
        if "island" not in self._task.params:
            self._watch.begin(self._start.step)
            # Compiling takes the first step as long as it likes, and may well look like a hang.
            if self._engine.options.compile:
                self._task.prepares(COMPILING)
            elif self._start.step < self._watch.end_step:
                self._task.prepares(FIRST_STEP)
                self._task.send(RankBusy(self._start.step, begins=True))
            loop.run(self._start.step)
            return
        if self._engine.options.compile:
            self._task.prepares(COMPILING)
        island = self._island()
        self._checkpoints.outer = SavedIsland(island)
        self._checkpoints.ramp = LearningRateRamp(self._start.ramp, is_fresh=self._start.is_fresh)
        self._rounds = OuterRounds(
            self._task, loop, island, self._checkpoints, self._keeper, self._report
        )
        self._rounds.run(self._start.step, self._start.tokens)

    @property
    def _goes_on(self) -> bool:
        """Say whether the ranks go on from a checkpoint, which one of them may still wait for."""
        return "checkpoint" in self._task.inputs or not self._late.is_here

    def _measure_initial(self) -> None:
        loss = self._watch.measure_initial()
        if loss is None:
            return
        self._report.report_initial(loss, self._watch.horizon)
        steps, loss_readings = self._watch.expected_steps(0), held_out_readings(self._watch.horizon)
        self._task.progress(0, steps, "steps", **loss_readings)

    def _new_watch(self, sequences: int) -> HeldOutMonitor:
        """Return the watch over development text: an island's is over merged weights."""
        params = self._task.params
        horizon = Horizon.of(params.get("horizon") or {})
        is_first_here = not int(params.get("local_rank", 0))
        best = BestWeights(self._task.output_dir / "best", writes=is_first_here)
        kind = OuterMonitor if "island" in params else HeldOutMonitor
        watch = kind(self._engine, self._plan, self._validation, sequences, horizon, best)
        if (checkpoint := self._task.inputs.get("checkpoint")) is not None:
            watch.arrived(self._start.step, checkpoint)
        return watch

    def _island(self) -> IslandView:
        """Return the island as it was, or as it begins with the weights that there are."""
        name, kind = (self._task.params["island"][key] for key in ("island", "kind"))
        if self._start.place is None:
            return IslandView(self._engine, kind)
        checkpoint = self._task.inputs["checkpoint"]
        try:
            return load_island(checkpoint, self._start.place, name, self._engine, kind)
        except CorruptArtifactError as error:
            raise CorruptCheckpointError(error.message) from error

    def _chosen_micro_batch(self, *, is_late: bool) -> int:
        """Return what fills the device; tried only where no other rank waits in its training.

        A model that is cut over ranks was planned with one, and nobody tries another alone.
        """
        if self._passes_together:
            size = int(self._task.params["micro_batch_sequences"])
            self._engine.take_micro_batch(size)
            return size
        steps = self._plan.steps - self._start.step
        may_search = not is_late and (self._engine.world_size == 1 or not self._start.step)
        setup = ProbeSetup(self._job.shape, self._plan, steps, may_search)
        return MicroBatchProbe(self._task, self._engine, setup).chosen()

    def _micro_batches_of_all(self) -> Sequence[int]:
        """Return the micro batch of each rank, where all make as many passes."""
        if not self._passes_together:
            return ()
        return [int(size) for (size,) in self._engine.gather([float(self._micro_batch)])]

    def _new_report(self) -> RunReport:
        params, shape = self._task.params, self._job.shape
        log_dir = Path(params["log_dir"]) if params.get("log_dir") else None
        node = str(params.get("node_name", ""))
        curves = Curves(log_dir, self._job.round, float(params.get("gang_peak") or 0.0))
        steps = self._watch.expected_steps(self._start.step)
        course = replace(self._course, steps=steps)
        return RunReport(self._engine, shape, course, node, curves, self._start.step)

    def _begin(self, checkpoint: Path | None) -> Start:
        if checkpoint is None:
            of = "weights" if self._engine.adapter is None else "adapter"
            self._load_first(self._task.inputs.get(of))
            return Start(0, 0, is_fresh=True)
        try:
            return self._go_on_from(checkpoint)
        except CorruptArtifactError as error:
            raise CorruptCheckpointError(error.message) from error

    def _arrived(self, checkpoint: Path) -> None:
        """Take up the state that this rank began without."""
        start = self._begin(checkpoint)
        if start.step != self._start.step:
            raise StateNotFetchedError(f"the state is of step {start.step}")
        self._start, self._checkpoints.last_good = start, checkpoint.name
        self._watch.arrived(start.step, checkpoint)
        self._checkpoints.tally = self._tally()
        self._checkpoints.steps_before = start.steps_before

    def _load_first(self, weights: Path | None) -> None:
        if weights is None:
            return
        try:
            load = load_weights if self._engine.adapter is None else load_adapter
            load(weights, self._engine)
        except CorruptArtifactError as error:
            raise CorruptWeightsError(f"the run can't begin: {error.message}") from error

    def _load_base(self, weights: Path) -> None:
        """Fill the frozen model that the adapter is trained beside."""
        try:
            load_base(weights, self._engine)
        except CorruptArtifactError as error:
            raise CorruptWeightsError(f"the run can't begin: {error.message}") from error

    def _go_on_from(self, checkpoint: Path) -> Start:
        state = load_state(checkpoint)
        load_weights(checkpoint, self._engine)
        if state.round != self._job.round:
            return self._begin_round_after(checkpoint, state)
        if state.plan_hash != self._plan.hash():
            raise ConflictError(
                f"the checkpoint {checkpoint.name} of round {state.round} was made by another plan",
                "a round is trained by one plan from its first step to its last",
            )
        load_moments(checkpoint, self._engine, state.optimizer_steps)
        self._engine.load_random_state(state.rng)
        steps_before = state.steps_before
        return Start(state.step, state.tokens, state.outer, state.ramp, steps_before=steps_before)

    def _begin_round_after(self, checkpoint: Path, state: TrainingState) -> Start:
        if not state.on_trunk:
            return Start(0, state.tokens, is_fresh=True)
        load_moments(checkpoint, self._engine, state.optimizer_steps)
        self._engine.load_random_state(state.rng)
        return Start(0, state.tokens, steps_before=state.optimizer_steps)

    def _agreement(self) -> Agreement:
        """Return what must be the same on all ranks."""
        return {
            "versions": {"jupiter": first_of_series(__version__), **self._engine.versions},
            "model": self._job.shape.model_dump(mode="json", exclude={"recipe"}),
            "plan": self._plan.what_counts(),
            "round": self._job.round,
            "data": {k: v for k, v in asdict(self._job.shards.index).items() if k != "files"},
            "held_out": len(self._task.inputs_named("holdout")),
            "step": self._start.step,
            "outer": self._start.place or {},
            "parameters": sum(map(math.prod, self._engine.shapes.values())),
            **self._told_of_partition(),
            # Numbers that are drawn may differ in a last bit between platforms: rank 0's count.
            "weights": self._weights_begun_with(),
            **self._quantized_base(),
        }

    def _told_of_partition(self) -> Agreement:
        """Return which part each rank holds; nothing where all hold everything."""
        partition = self._engine.partition or self._engine.base_partition
        return {} if partition is None else {"partition": partition.to_plain()}

    def _quantized_base(self) -> Agreement:
        """Return a hash of what the base was quantized to; nothing where it is whole."""
        found = "" if self._is_cut else self._engine.base_digest()
        return {"quantized_base": found} if found else {}

    def _weights_begun_with(self) -> str:
        if self._is_cut:  # nobody holds what could be compared: each reads its part of one folder
            read = [name for name in sorted(FROM_FILES) if name in self._task.inputs]
            return "/".join(self._task.inputs[name].name for name in read) or "drawn"
        if self._late_ranks:  # whose weights aren't there: they are compared once they are
            return str(self._task.params["from_checkpoint"])
        return digest(self._engine.weights()).hex() if self._are_loaded else "drawn"

    def _tally(self) -> TokenTally:
        per_step = self._plan.batch_sequences * self._job.shards.seq_len
        return TokenTally(self._start.step, self._start.tokens, per_step)

    def _step_done(self, done: StepDone) -> None:
        self._last, self._checkpoints.loss = done, done.mean_loss
        self._trained_steps += 1
        sync = self._sync.check(done.step, is_last=done.is_last, is_complete=done.is_complete)
        self._report.step(done, sync, self._watch.horizon, self._watch.expected_steps(done.step))
        more = {} if self._rounds is None else self._rounds.readings
        self._task.progress(
            done.step,
            self._watch.expected_steps(done.step),
            "steps",
            tokens=self._checkpoints.tally.at(done.step),
            **readings(done, self._engine.rank),
            **held_out_readings(self._watch.horizon),
            **self._snapshots.readings,
            **more,
        )
        self._checkpoints.check()
        writes = self._rounds is None and self._writes(done)
        if self._is_cut:  # all write; the first one's clock counts
            writes = bool(self._engine.gather([float(writes)])[0][0])
        if writes or not done.is_complete:
            self._report_busy(done.step)
        if writes:
            must_be_saved = done.is_last and (self._is_cut or self._engine.rank == 0)
            self._write(done.step, must_be_saved=must_be_saved)
        if not done.is_last:
            self._snapshots.after(done.step)

    def _write(self, step: int, *, must_be_saved: bool) -> None:
        if not self._is_cut:
            self._checkpoints.write(step, must_be_saved=must_be_saved)
        else:
            self._checkpoints.write_part(step, must_be_saved=must_be_saved)

    def _report_busy(self, step: int) -> None:
        """Report that the next step begins later, so that the watchdog doesn't end this rank."""
        self._task.send(RankBusy(step))

    def _writes(self, done: StepDone) -> bool:
        """Say whether this rank writes a checkpoint of the step.

        Rank 0 does. Where others join, each machine writes its own: nobody waits for a copy then.
        """
        if done.is_last and done.step < self._watch.end_step:
            return self._late.is_here and not int(self._task.params.get("local_rank", 0))
        is_decided = self._watch.horizon.decay_from == done.step
        is_of_plan = done.is_last or is_decided or self._plan.saves_after(done.step)
        return self._engine.rank == 0 and (is_of_plan or self._checkpoints.is_due)

    def _save_now(self, step: int) -> CheckpointWritten | None:
        if self._is_cut or (self._rounds is not None and not self._rounds.can_be_saved):
            return None
        return self._checkpoints.save_now(step)

    def _finished(self) -> TaskFinished:
        step = self._start.step if self._last is None else self._last.step
        is_over = step == self._watch.end_step
        if self._rounds is not None:
            step, is_over = self._rounds.step, self._rounds.is_over
        if is_over:
            self._report.finished(self._watch.horizon)
        counts: dict[str, float] = {
            "steps": self._trained_steps,
            "tokens": self._checkpoints.tally.at(step) - self._start.tokens,
            "parameters": sum(map(math.prod, self._engine.shapes.values())),
        }
        summary: dict[str, Any] = {
            "engine": self._engine.name,
            "device": self._engine.device,
            "step": step,
            "loss": None if self._last is None else self._last.mean_loss,
            "stopped": not is_over,
        }
        return TaskFinished({}, counts, summary)
