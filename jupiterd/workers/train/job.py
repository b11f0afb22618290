"""What a rank is to train: read from its task, and checked.

Owns what must fit together: model, plan, data and tokenizer. Doesn't know engines or training.

inputs: shards, tokenizer
params: shape, plan, round, partition or base_partition (see `cycle.training.partition`; none: each
rank holds all)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.training.document_masking import check_documents_apart
from jupiterd.cycle.training.partition.partition import BASE_PARAM, PARAM, Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.link import Task
from jupiterd.workers.tokens.marks import document_marks
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.tokens.tokenizer import load_tokenizer, tokenizer_hash


@dataclass(frozen=True)
class TrainingJob:
    """What is to be trained."""

    shape: ModelShape
    plan: TrainPlan
    round: int
    shards: ShardSet
    end_token: int
    partition: Partition | None = None
    """What of the model each rank holds; None: all of it."""
    base_partition: Partition | None = None
    """What each holds of the frozen model beside an adapter; None: all of it."""


def read_job(task: Task, world_size: int) -> TrainingJob:
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
    plan = _with_conversations_apart(shape, plan, shards)
    check_batch(plan.batch_sequences, world_size)
    if shards.index.tokenizer_hash != tokenizer_hash(task.inputs["tokenizer"]):
        raise UsageError("the shards were made with another tokenizer", "prepare the data again")
    end = end_token(task.inputs["tokenizer"])
    cut, of_base = (_partition(task.params.get(name)) for name in (PARAM, BASE_PARAM))
    return TrainingJob(shape, plan, int(task.params["round"]), shards, end, cut, of_base)


def _partition(told: Mapping[str, Any] | None) -> Partition | None:
    return None if told is None else Partition.of(told)


def check_batch(batch_sequences: int, world_size: int) -> None:
    """Make sure that every rank gets a sequence of each step.

    Raises:
        UsageError: there are too few.
    """
    if batch_sequences < world_size:
        raise UsageError(
            f"a batch of {batch_sequences} sequences can't be shared by {world_size} ranks",
            "raise training.batch_sequences in the domain file",
        )


def end_token(folder: Path) -> int:
    """Return the token that ends every document.

    Raises:
        InvalidSettingError: the tokenizer has none.
    """
    return document_marks(folder, load_tokenizer(folder)).end


def _with_conversations_apart(shape: ModelShape, plan: TrainPlan, shards: ShardSet) -> TrainPlan:
    """Return the plan with masks where the data is conversations and the model takes masks."""
    if not shards.index.loss_mask:
        return plan
    options = plan.options.model_copy(update={"document_masks": "on"})
    try:
        check_documents_apart(shape, options)
    except UsageError as error:
        print(f"{error.message}: conversations see those before them")  # noqa: T201 - the log
        return plan
    return plan.model_copy(update={"options": options})


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
