"""The task `train`: one rank of a torch gang, from the first step of its epoch to the last.

Owns putting the parts together: what to start from, when a checkpoint is due, what the daemon is
told. Doesn't know how a step is computed (`loop`) or who the other ranks are (`group`).

inputs: shards, tokenizer, checkpoint (optional)
params: shape, plan, round, rank, world_size, epoch, store_host, store_port, device
A checkpoint of the same round is continued exactly; one of an earlier round gives its weights.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.errors import ConflictError, CorruptArtifactError, UsageError
from jupiterd.frames import CheckpointWritten, TaskFinished
from jupiterd.workers.data.shards import ShardSet
from jupiterd.workers.data.tokenizer import END_OF_TEXT, load_tokenizer
from jupiterd.workers.link import Task
from jupiterd.workers.train.batches import Batches
from jupiterd.workers.train.checkpoint import (
    TrainingState,
    load_optimizer,
    load_state,
    load_weights,
    save_checkpoint,
)
from jupiterd.workers.train.group import Group, open_group
from jupiterd.workers.train.loop import StepDone, TrainingLoop, make_optimizer
from jupiterd.workers.train.model import make_model


@dataclass(frozen=True)
class Start:
    """Where this epoch begins."""

    step: int
    tokens: int
    """Tokens trained on along the line when the round began."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    with open_group(task.params) as group:
        return RankTraining(task, group).run()


class RankTraining:
    """One rank's training, put together from the task's parameters."""

    def __init__(self, task: Task, group: Group) -> None:
        self._task = task
        self._group = group
        self._shape = ModelShape.from_plain(task.params["shape"])
        self._plan = TrainPlan.from_plain(task.params["plan"])
        self._round = int(task.params["round"])
        self._device = str(task.params.get("device", "cpu"))
        self._shards = _fitting_shards(task.inputs["shards"], self._shape)
        if self._plan.batch_sequences < group.world_size:
            raise UsageError(
                f"a batch of {self._plan.batch_sequences} sequences can't be shared by "
                f"{group.world_size} ranks",
                "raise training.batch_sequences in the domain file",
            )
        end_token = _end_token(load_tokenizer(task.inputs["tokenizer"]))
        self._model: Qwen3ForCausalLM = make_model(self._shape, self._plan.seed, end_token)
        torch.nn.Module.to(self._model, self._device)
        self._optimizer = make_optimizer(self._model, self._plan)
        self._start = self._begin(task.inputs.get("checkpoint"))
        self._last: StepDone | None = None

    def run(self) -> TaskFinished:
        """Train to the end of the round, or until told to stop; say what was done."""
        batches = Batches(
            shards=self._shards,
            seed=f"{self._plan.seed}/round {self._round}",
            batch_sequences=self._plan.batch_sequences,
            micro_batch_sequences=self._plan.micro_batch_sequences,
            rank=self._group.rank,
            world_size=self._group.world_size,
        )
        TrainingLoop(
            model=self._model,
            optimizer=self._optimizer,
            plan=self._plan,
            batches=batches,
            group=self._group,
            stop_requested=lambda: self._task.stop_requested,
            step_done=self._step_done,
        ).run(self._start.step)
        return self._finished()

    def _begin(self, checkpoint: Path | None) -> Start:
        if checkpoint is None:
            return Start(0, 0)
        state = load_state(checkpoint)
        load_weights(checkpoint, self._model)
        if state.round != self._round:
            return Start(0, state.tokens)
        if state.plan_hash != self._plan.hash():
            raise ConflictError(
                f"the checkpoint {checkpoint.name} of round {state.round} was made by another plan",
                "a round is trained by one plan from its first step to its last",
            )
        load_optimizer(checkpoint, self._model, self._optimizer, state.step)
        torch.set_rng_state(torch.frombuffer(bytearray.fromhex(state.rng), dtype=torch.uint8))
        return Start(state.step, state.tokens - self._tokens_of(state.step))

    def _tokens_of(self, steps: int) -> int:
        return steps * self._plan.batch_sequences * self._shards.seq_len

    def _step_done(self, done: StepDone) -> None:
        self._last = done
        readings = {
            "step": done.step,
            "loss": done.loss,
            "lr": done.learning_rate,
            "grad_norm": done.grad_norm,
            "tokens_per_s": done.tokens_per_s,
        }
        self._task.progress(done.step, self._plan.steps, "steps", **readings)
        is_due = done.is_last or done.step % self._plan.checkpoint_every_steps == 0
        if is_due and self._group.rank == 0:
            self._write_checkpoint(done)

    def _write_checkpoint(self, done: StepDone) -> None:
        name = f"checkpoint-{done.step:08}"
        tokens = self._start.tokens + self._tokens_of(done.step)
        state = TrainingState(
            round=self._round,
            step=done.step,
            tokens=tokens,
            cursor=done.cursor,
            loss=done.mean_loss,
            plan_hash=self._plan.hash(),
            model_hash=self._shape.architecture_hash(),
            rng=bytes(torch.get_rng_state().tolist()).hex(),
        )
        folder = self._task.output_dir / name
        save_checkpoint(folder, self._model, self._optimizer, state, self._task.inputs["tokenizer"])
        self._task.checkpoint_written(
            CheckpointWritten(name, done.step, tokens, done.cursor, done.mean_loss)
        )

    def _finished(self) -> TaskFinished:
        step = self._start.step if self._last is None else self._last.step
        counts: dict[str, float] = {
            "steps": step - self._start.step,
            "tokens": self._tokens_of(step - self._start.step),
            "parameters": sum(parameter.numel() for parameter in self._model.parameters()),
        }
        summary: dict[str, Any] = {
            "engine": "torch/gloo" if self._group.world_size > 1 else "torch",
            "device": self._device,
            "step": step,
            "loss": None if self._last is None else self._last.mean_loss,
            "stopped": step < self._plan.steps,
        }
        return TaskFinished({}, counts, summary)


def _fitting_shards(folder: Path, shape: ModelShape) -> ShardSet:
    shards = ShardSet(folder)
    if not shards.sequences:
        raise CorruptArtifactError(f"the shard folder {folder.name} holds no sequence")
    if shards.seq_len != shape.seq_len or shards.index.vocab_size > shape.vocab_size:
        raise UsageError(
            f"the shards have sequences of {shards.seq_len} and a vocabulary of "
            f"{shards.index.vocab_size}, the model {shape.seq_len} and {shape.vocab_size}",
            "pack the data for the model's size",
        )
    return shards


def _end_token(tokenizer: Tokenizer) -> int:
    found: int | None = tokenizer.token_to_id(END_OF_TEXT)
    if found is None:
        raise CorruptArtifactError(f"the tokenizer has no {END_OF_TEXT}")
    return found
