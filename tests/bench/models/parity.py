"""One tiny model on both engines: its logits, and the losses of twenty steps.

Owns the comparison. Doesn't know which models there are (`cases`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from jupiterd.cycle.training.model_traits import traits
from jupiterd.cycle.training.plan import ModelShape, Recipe, TrainPlan, derive, shape_of_config
from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
from jupiterd.workers.train.mlx.ring import Ring
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch, Tensors
from tests.bench.models.cases import SEQ_LEN, VOCAB, Case
from tests.bench.models.results import STEPS, Compared

BATCH = 4
RATE = 1e-3
SEED = 20_261_126


def compared(case: Case) -> Compared:
    """Compute a case on both engines."""
    from transformers import AutoConfig

    torch.set_num_threads(1)
    try:
        config = AutoConfig.for_model(case.architecture, **case.config()).to_dict()
    except Exception as error:  # noqa: BLE001 - as below
        return Compared(case.architecture, case.name, frozenset(), error=_first_line(error))
    asked = traits(config, SEQ_LEN)
    try:
        shape = _shape(case.architecture, config)
        logits, losses = _differences(shape)
    except Exception as error:  # noqa: BLE001 - whatever hinders it stands in the table
        return Compared(case.architecture, case.name, asked, error=_first_line(error))
    return Compared(case.architecture, case.name, asked, logits, losses)


def _first_line(error: Exception) -> str:
    lines = str(getattr(error, "message", error)).splitlines() or [type(error).__name__]
    return lines[0]


def _shape(architecture: str, config: dict[str, Any]) -> ModelShape:
    recipe = Recipe(
        first_steps=STEPS, later_steps=STEPS, batch_sequences=BATCH, micro_batch_sequences=2,
        learning_rate=RATE, later_learning_rate=RATE, checkpoint_every_steps=1000,
    )  # fmt: skip
    return shape_of_config(architecture, config, recipe).model_copy(update={"seq_len": SEQ_LEN})


def _differences(shape: ModelShape) -> tuple[float, float]:
    plan = TrainPlan.from_plain(derive(shape, 1).to_plain())
    ours = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    ours.begin(has_same_weights=True)
    mlx = MlxTrainingEngine(shape, plan, 0, Ring(0, 1))
    rng = np.random.default_rng(SEED)
    weights = _spread(ours.weights(), rng)
    for engine in (ours, mlx):
        engine.load_weights(weights)
    tokens = rng.integers(0, VOCAB, SEQ_LEN)
    first, second = (engine.logits(tokens, weights) for engine in (ours, mlx))
    share = float(np.abs(first - second).max() / np.ptp(first))
    losses = [
        abs(ours.step(batch, RATE)[0] - mlx.step(batch, RATE)[0])
        for batch in (_batch(rng) for _ in range(STEPS))
    ]
    return share, max(losses)


def _spread(weights: Tensors, rng: np.random.Generator) -> Tensors:
    """Return weights in which nothing is zero or one: norms and biases count, too."""
    return {
        name: values + rng.normal(0, 0.05, values.shape).astype(np.float32)
        for name, values in weights.items()
    }


def _batch(rng: np.random.Generator) -> Sequence[MicroBatch]:
    rows = rng.zipf(1.5, (BATCH, SEQ_LEN + 1)) % (VOCAB - 50)
    rows[:, ::9] = 0  # documents end
    halves = np.split(rows.astype(np.int64), 2)
    return [MicroBatch(half[:, :-1], half[:, 1:]) for half in halves]
