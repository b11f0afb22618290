"""What both engines are asked beside quantized weights: the plan, and losses before and after.

Owns these. Knows no engine, so that a process of either one imports nothing of the other.
"""

import json
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, shape_of_config
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine
from tests.support.workers.tiny_run import tiny_shape

AS_IT_IS: Final = "none"
RATE: Final = 1e-3
PASSES: Final = 2


def shape_of_folder(folder: Path, rows: NDArray[np.int64]) -> ModelShape:
    """Return a model's shape for rows of shape [rows, sequences, tokens + 1]."""
    config = json.loads((folder / "config.json").read_text())
    shape = shape_of_config("SmolLM2", config, tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": rows.shape[-1] - 1})


def plan_beside(shape: ModelShape, quantize: str) -> TrainPlan:
    """Return the plan of a small adapter."""
    from tests.support.workers.tiny_engine import tiny_plan

    adapter = parse_adapter(f"rank=8,targets=attention,quantize={quantize}")
    return tiny_plan(shape, adapter=adapter, weight_decay=0.0, batch_sequences=1)


def before_and_after(
    engine: TrainingEngine, rows: NDArray[np.int64]
) -> tuple[list[float], list[float]]:
    """Return each row's nats a token before any step, and in the last of some passes over them."""
    batches = [MicroBatch(row[:, :-1], row[:, 1:]) for row in rows]
    before = [engine.step([batch], 0.0)[0] for batch in batches]
    for _ in range(PASSES):
        after = [engine.step([batch], RATE)[0] for batch in batches]
    return before, after
