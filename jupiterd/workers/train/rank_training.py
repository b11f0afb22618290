"""One rank's training, from the first step of its epoch to the last, on any engine.

Owns putting the parts together: what to start from, when a checkpoint is due, what the daemon is
told. Doesn't know how a step is computed (`engine`) or who the other ranks are.

inputs: shards, tokenizer, checkpoint or weights (optional), holdout.N (optional)
params: shape, plan, round, and what the engine's rank module names
A checkpoint of the same round is continued exactly; one of an earlier round gives its weights.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from jupiterd import __version__
from jupiterd.cycle.agreement import Agreement
from jupiterd.cycle.documents_apart import check_documents_apart
from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.errors import (
    ConflictError,
    CorruptArtifactError,
    CorruptCheckpointError,
    CorruptWeightsError,
    LossDivergedError,
    StateNotFetchedError,
    UsageError,
)
from jupiterd.frames import CheckpointUnsaved, CheckpointWritten, StateKept, TaskFinished
from jupiterd.workers.data.shards import ShardSet
from jupiterd.workers.data.tokenizer import END_OF_TEXT, load_tokenizer, tokenizer_hash
from jupiterd.workers.link import Task
from jupiterd.workers.train.agreeing import agree
from jupiterd.workers.train.batches import Batches
from jupiterd.workers.train.checkpoint import (
    TrainingState,
    load_moments,
    load_state,
    load_weights,
    save_checkpoint,
    snapshot,
)
from jupiterd.workers.train.checkpoint_saver import CheckpointSaver
from jupiterd.workers.train.engine import Engine, Tensors, digest
from jupiterd.workers.train.late_rank import LateRank
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.train.run_report import RunReport, course_of
from jupiterd.workers.train.state_keeper import StateKeeper
from jupiterd.workers.train.validation import Validation, sequences_to_score
from jupiterd.workers.train.weight_sync import WeightSync


@dataclass(frozen=True)
class Job:
    """What is to be trained, read from a task and checked."""

    shape: ModelShape
    plan: TrainPlan
    round: int
    shards: ShardSet
    end_token: int


@dataclass(frozen=True)
class Start:
    """Where this epoch begins."""

    step: int
    tokens: int
    """Tokens trained on along the line when the round began."""


def read_job(task: Task, world_size: int) -> Job:
    """Read the task's parameters and inputs.

    Raises:
        UsageError: the data doesn't fit the model, or the batch not the gang.
        CorruptArtifactError: an input can't be used.
    """
    shape = ModelShape.from_plain(task.params["shape"])
    plan = TrainPlan.from_plain(task.params["plan"])
    check_documents_apart(shape, plan.options)
    shards = _fitting_shards(task.inputs["shards"], shape)
    if plan.options.document_masks == "on" and not shards.index.document_offsets:
        raise UsageError(
            "the data doesn't say where its documents begin",
            "prepare it again, or train with document masks: off",
        )
    if plan.batch_sequences < world_size:
        raise UsageError(
            f"a batch of {plan.batch_sequences} sequences can't be shared by {world_size} ranks",
            "raise training.batch_sequences in the domain file",
        )
    if shards.index.tokenizer_hash != tokenizer_hash(task.inputs["tokenizer"]):
        raise UsageError("the shards were made with another tokenizer", "prepare the data again")
    end_token = _end_token(load_tokenizer(task.inputs["tokenizer"]))
    return Job(shape, plan, int(task.params["round"]), shards, end_token)


class RankTraining:
    """The training of one job by one rank."""

    def __init__(self, task: Task, job: Job, engine: Engine) -> None:
        self._task = task
        self._job = job
        self._plan = job.plan
        self._engine = engine
        self._late_ranks = frozenset(map(int, task.params.get("late_ranks", ())))
        """Those whose state is fetched while the others train."""
        is_late = engine.rank in self._late_ranks
        self._are_loaded = is_late or not {"checkpoint", "weights"}.isdisjoint(task.inputs)
        """The first weights come from files."""
        self._start = (
            Start(int(task.params["from_step"]), 0)
            if is_late
            else self._begin(task.inputs.get("checkpoint"))
        )
        self._late = LateRank(engine, task, self._arrived, is_late=is_late)
        self._last: StepDone | None = None
        self._saver = CheckpointSaver(task.inputs["tokenizer"])
        self._last_good = _name_of(task.inputs.get("checkpoint"))
        self._sync = WeightSync(engine, self._start.step)
        shards = job.shards
        self._course = course_of(job.shape, job.plan, self._micro_batch, shards.sequences)
        self._validation = Validation(
            task.inputs_named("holdout"),
            task.inputs["tokenizer"],
            shards.seq_len,
            sequences_to_score(job.plan.batch_sequences, shards.sequences),
            self._micro_batch,
            documents_apart=engine.options.documents_apart,
        )
        self._report = self._new_report()
        keeper = StateKeeper(self._start.step, self._keep)
        engine.updating = keeper.updating
        task.keep = keeper.keep

    def run(self) -> TaskFinished:
        """Train to the end of the round, or until told to stop; say what was done."""
        if self._engine.world_size > 1:  # reading all weights for it takes a while
            agree(self._engine, self._agreement(), list(self._task.params.get("members", ())))
        self._engine.begin(has_same_weights=self._are_loaded)
        self._task.lingers = self._engine.world_size > 1
        batches = Batches(
            shards=self._job.shards,
            seed=f"{self._plan.seed}/round {self._job.round}",
            batch_sequences=self._plan.batch_sequences,
            micro_batch_sequences=self._micro_batch,
            rank=self._engine.rank,
            world_size=self._engine.world_size,
            documents_apart=self._engine.options.documents_apart,
        )
        loop = TrainingLoop(
            engine=self._engine,
            plan=self._plan,
            batches=batches,
            stop_requested=lambda: self._task.stop_requested,
            step_done=self._step_done,
            late=self._late,
            late_ranks=self._late_ranks,
        )
        try:
            with self._report:
                loop.run(self._start.step)
        except LossDivergedError as error:
            self._saver.wait()
            told = f"{error.message}; the last good checkpoint is {self._last_good}"
            raise LossDivergedError(told) from error
        finally:
            self._saver.wait()
        return self._finished()

    @property
    def _micro_batch(self) -> int:
        """Return how many sequences this rank holds at a time; fewer where its memory ran out."""
        planned = self._plan.micro_batch_sequences
        return int(self._task.params.get("micro_batch_sequences", planned))

    def _new_report(self) -> RunReport:
        params, shape = self._task.params, self._job.shape
        log_dir = Path(params["log_dir"]) if params.get("log_dir") else None
        node = str(params.get("node_name", ""))
        return RunReport(self._engine, shape, self._course, node, log_dir, self._start.step)

    def _begin(self, checkpoint: Path | None) -> Start:
        if checkpoint is None:
            self._load_first(self._task.inputs.get("weights"))
            return Start(0, 0)
        try:
            return self._go_on_from(checkpoint)
        except CorruptArtifactError as error:
            raise CorruptCheckpointError(error.message) from error

    def _arrived(self, checkpoint: Path) -> None:
        """Take up the state that this rank began without."""
        start = self._begin(checkpoint)
        if start.step != self._start.step:
            raise StateNotFetchedError(f"the state is of step {start.step}")
        self._start, self._last_good = start, checkpoint.name

    def _load_first(self, weights: Path | None) -> None:
        if weights is None:
            return
        try:
            load_weights(weights, self._engine)
        except CorruptArtifactError as error:
            raise CorruptWeightsError(f"the run can't begin: {error.message}") from error

    def _go_on_from(self, checkpoint: Path) -> Start:
        state = load_state(checkpoint)
        load_weights(checkpoint, self._engine)
        if state.round != self._job.round:
            return Start(0, state.tokens)
        if state.plan_hash != self._plan.hash():
            raise ConflictError(
                f"the checkpoint {checkpoint.name} of round {state.round} was made by another plan",
                "a round is trained by one plan from its first step to its last",
            )
        load_moments(checkpoint, self._engine, state.step)
        self._engine.load_random_state(state.rng)
        return Start(state.step, state.tokens - self._tokens_of(state.step))

    def _agreement(self) -> Agreement:
        """Return what must be the same on all ranks."""
        weights = self._engine.weights()
        return {
            "versions": {"jupiter": __version__, **self._engine.versions},
            "model": self._job.shape.model_dump(mode="json", exclude={"recipe"}),
            "plan": self._plan.what_counts(),
            "round": self._job.round,
            "data": {k: v for k, v in asdict(self._job.shards.index).items() if k != "files"},
            "held_out": len(self._task.inputs_named("holdout")),
            "step": self._start.step,
            "parameters": sum(math.prod(values.shape) for values in weights.values()),
            # Numbers that are drawn may differ in a last bit between platforms: rank 0's count.
            "weights": self._weights_begun_with(weights),
        }

    def _weights_begun_with(self, weights: Tensors) -> str:
        if self._late_ranks:  # whose weights aren't there: they are compared once they are
            return str(self._task.params["from_checkpoint"])
        return digest(weights).hex() if self._are_loaded else "drawn"

    def _tokens_of(self, steps: int) -> int:
        return steps * self._plan.batch_sequences * self._job.shards.seq_len

    def _step_done(self, done: StepDone) -> None:
        self._last = done
        sync = self._sync.check(done.step, is_last=done.is_last, is_complete=done.is_complete)
        self._report.step(done, sync, self._val_loss(done))
        readings = {
            "step": done.step,
            "loss": done.loss,
            "lr": done.learning_rate,
            "grad_norm": done.grad_norm,
            "tokens_per_s": done.tokens_per_s,
        }
        self._task.progress(done.step, self._plan.steps, "steps", **readings)
        self._saver.check()
        if self._writes(done):
            self._write_checkpoint(done)

    def _writes(self, done: StepDone) -> bool:
        """Say whether this rank writes a checkpoint of the step.

        Rank 0 does. Where others join, each machine writes its own: nobody waits for a copy then.
        """
        if done.is_last and done.step < self._plan.steps:
            return self._late.is_here and not int(self._task.params.get("local_rank", 0))
        is_due = done.is_last or done.step % self._plan.checkpoint_every_steps == 0
        return is_due and self._engine.rank == 0

    def _val_loss(self, done: StepDone) -> float | None:
        """Return the loss on what was held out, at the end of a pass; None in its midst."""
        if not self._course.ends_pass(done.step):
            return None
        return self._validation.loss(self._engine, done.shares)

    def _write_checkpoint(self, done: StepDone) -> None:
        state = self._state(done.step)
        name = f"checkpoint-{done.step:08}"
        told = CheckpointWritten(name, state.step, state.tokens, state.cursor, done.mean_loss)
        self._saver.save(
            snapshot(self._engine, state),
            self._task.output_dir / name,
            lambda: self._checkpoint_written(told),
            None
            if done.is_last and self._engine.rank == 0
            else lambda: self._checkpoint_unsaved(done.step),
        )

    def _checkpoint_written(self, told: CheckpointWritten) -> None:
        self._last_good = told.path
        self._task.checkpoint_written(told)

    def _checkpoint_unsaved(self, step: int) -> None:
        where = "the disk of rank 0's machine has no room"
        self._task.send(CheckpointUnsaved(step, f"{where} for the checkpoint of step {step}"))

    def _keep(self, step: int) -> StateKept:
        """Write down the weights as they are; whoever takes them in syncs them to the disk."""
        if not _are_numbers(self._engine.weights()):
            return StateKept()
        state = self._state(step)
        name = f"kept-{step:08}"
        folder, tokenizer = self._task.output_dir / name, self._task.inputs["tokenizer"]
        save_checkpoint(folder, self._engine, state, tokenizer, is_synced=False)
        return StateKept(name, state.step, state.tokens, state.cursor, self._last_loss())

    def _last_loss(self) -> float:
        """Return the loss that is known last; the step that is kept may have no loss yet."""
        if self._last is None:
            return float(self._task.params.get("from_loss", 0.0))
        return self._last.mean_loss

    def _state(self, step: int) -> TrainingState:
        return TrainingState(
            round=self._job.round,
            step=step,
            tokens=self._start.tokens + self._tokens_of(step),
            cursor=step * self._plan.batch_sequences,
            plan_hash=self._plan.hash(),
            model_hash=self._job.shape.architecture_hash(),
            rng=self._engine.random_state(),
        )

    def _finished(self) -> TaskFinished:
        step = self._start.step if self._last is None else self._last.step
        if step == self._plan.steps:
            self._report.finished()
        counts: dict[str, float] = {
            "steps": step - self._start.step,
            "tokens": self._tokens_of(step - self._start.step),
            "parameters": sum(math.prod(w.shape) for w in self._engine.weights().values()),
        }
        summary: dict[str, Any] = {
            "engine": self._engine.name,
            "device": self._engine.device,
            "step": step,
            "loss": None if self._last is None else self._last.mean_loss,
            "stopped": step < self._plan.steps,
        }
        return TaskFinished({}, counts, summary)


def _fitting_shards(folder: Path, shape: ModelShape) -> ShardSet:
    shards = ShardSet(folder, shape.seq_len)
    if not shards.sequences:
        raise CorruptArtifactError(f"the shard folder {folder.name} holds no sequence")
    if shards.seq_len != shape.seq_len or shards.index.vocab_size > shape.vocab_size:
        raise UsageError(
            f"the shards have sequences of {shards.seq_len} and a vocabulary of "
            f"{shards.index.vocab_size}, the model {shape.seq_len} and {shape.vocab_size}",
            "pack the data for the model's size",
        )
    return shards


def _name_of(checkpoint: Path | None) -> str:
    return "none" if checkpoint is None else checkpoint.name


def _are_numbers(weights: Tensors) -> bool:
    return all(bool(np.isfinite(values.sum())) for values in weights.values())


def _end_token(tokenizer: Tokenizer) -> int:
    found: int | None = tokenizer.token_to_id(END_OF_TEXT)
    if found is None:
        raise CorruptArtifactError(f"the tokenizer has no {END_OF_TEXT}")
    return found
