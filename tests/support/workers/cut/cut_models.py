"""Tiny models that are cut over ranks, trained for some steps, and what became of them.

Owns the architectures, the batches and the comparison's numbers. Doesn't know processes
(`torch_ranks`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import AutoConfig

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.pass_count import pass_count, slices
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, shape_of_config
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.torch.partition.cut_base_engine import CutBaseTorchEngine
from jupiterd.workers.train.torch.partition.partitioned_engine import PartitionedTorchEngine
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import model_without_memory, named_parameters
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, tiny_shape

BATCH = 12
"""Sequences of a step."""
RATE = 1e-3
BASE_SEED = 5

Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Case:
    """A model, and how it is cut."""

    architecture: str = "ours"
    is_tied: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    partition: Partition | None = None
    """None: one machine holds all of it."""
    steps: int = 50
    micro_batch: int = 2

    def __str__(self) -> str:
        how = self.partition and f"stage {self.partition.stage} {self.partition.parts}"
        return f"{self.architecture}, tied: {self.is_tied}, {dict(self.options)}, {how}"


@dataclass(frozen=True)
class Outcome:
    """What became of a training."""

    losses: Sequence[float]
    """This rank's parts of them."""
    norms: Sequence[float]
    weights: Arrays
    moments: Arrays
    nats: float
    """This rank's part of them."""
    logits: NDArray[np.float32]


def shape_of(case: Case) -> ModelShape:
    """Return the case's model."""
    if case.architecture == "ours":
        return tiny_shape(layers=3, tied=case.is_tied)
    sizes = {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "n_positions": SEQ_LEN,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }  # fmt: skip
    config = AutoConfig.for_model(case.architecture, tie_word_embeddings=case.is_tied, **sizes)
    shape = shape_of_config(case.architecture, config.to_dict(), tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def plan_of(case: Case) -> TrainPlan:
    """Return the case's plan."""
    return tiny_plan(shape_of(case), batch_sequences=BATCH, **case.options)


def engine_of(case: Case, group: ProcessGroup) -> TorchEngine:
    """Return the case's engine, before `begin`."""
    what = (shape_of(case), plan_of(case), 0, group, "cpu")
    if "adapter" in case.options:
        return _beside_base(case, group)
    if case.partition is None:
        return TorchEngine(*what)
    return PartitionedTorchEngine(*what, case.partition)


def _beside_base(case: Case, group: ProcessGroup) -> TorchEngine:
    """Return an engine that trains an adapter, with a base that is drawn."""
    what, cut = (shape_of(case), plan_of(case), 0, group, "cpu"), case.partition
    engine = TorchEngine(*what) if cut is None else CutBaseTorchEngine(*what, cut)
    whole = named_parameters(model_without_memory(what[0], 0, engine.options))
    shapes = {name: tuple(parameter.shape) for name, parameter in whole.items()}
    engine.load_base(first_weights(shapes, BASE_SEED))
    return engine


def batch_of(step: int) -> NDArray[np.int64]:
    """Return a step's sequences, [sequences, tokens + 1]: there is something to learn in them."""
    chance = np.random.default_rng(step)
    return chance.zipf(1.5, (BATCH, SEQ_LEN + 1)).astype(np.int64) % 250


def shares_of(group: ProcessGroup) -> list[int]:
    """Return how many sequences each rank has: unlike ones."""
    shares = [BATCH // group.world_size] * group.world_size
    shares[0] += 1
    shares[-1] -= 1
    return shares


def micro_batches(step: int, group: ProcessGroup, micro_batch: int) -> list[MicroBatch]:
    """Return what a rank passes through in a step: as many passes as the others."""
    shares = shares_of(group)
    first = sum(shares[: group.rank])
    own = batch_of(step)[first : first + shares[group.rank]]
    passes = pass_count(shares, [micro_batch] * len(shares))
    return [MicroBatch(own[s, :-1], own[s, 1:]) for s in slices(len(own), passes)]


def train(engine: TorchEngine, case: Case, group: ProcessGroup, first: int = 0) -> Outcome:
    """Take steps, and return what became of it."""
    found = [
        engine.step(micro_batches(step, group, case.micro_batch), RATE)
        for step in range(first, first + case.steps)
    ]
    held_out = micro_batches(1_000_000, group, case.micro_batch)
    weights = engine.weights()
    return Outcome(
        losses=[loss for loss, _ in found],
        norms=[norm for _, norm in found],
        weights=weights,
        moments=engine.moments(),
        nats=engine.nats(held_out),
        logits=logits_of(engine, weights),
    )


def logits_of(engine: TorchEngine, weights: Arrays) -> NDArray[np.float32]:
    """Return what a model says; nothing beside a base of which nobody has all."""
    if engine.base_partition is not None:
        return np.zeros(0, dtype=np.float32)
    return engine.logits(batch_of(1)[0, 1:], weights)


def trained(group: ProcessGroup, case: Case) -> Outcome:
    """Train a case from its first weights."""
    engine = engine_of(case, group)
    engine.begin(has_same_weights=False)
    return train(engine, case, group)


def trained_on(group: ProcessGroup, case: Case, state: Outcome, taken: int) -> Outcome:
    """Go on from what became of another training after so many steps."""
    engine = engine_of(case, group)
    engine.load_weights(state.weights)
    engine.load_moments(state.moments, taken)
    engine.begin(has_same_weights=True)
    return train(engine, case, group, first=taken)


def all_trained(group: ProcessGroup, cases: Sequence[Case]) -> list[Outcome]:
    """Train one case after the other."""
    return [trained(group, case) for case in cases]


def summed(outcomes: Sequence[Outcome]) -> list[float]:
    """Return the losses of steps, of the parts of all ranks."""
    return [sum(parts) for parts in zip(*(outcome.losses for outcome in outcomes), strict=True)]
