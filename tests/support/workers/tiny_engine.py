"""An engine over the tiny shape and its random shards, stepped by hand."""

from pathlib import Path
from typing import Any

from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.tiny_run import tiny_shape

BATCH = 6


def tiny_plan(shape: ModelShape | None = None, **changes: Any) -> TrainPlan:
    """Return the tiny plan with other fields of its own or of its options."""
    plain = derive(shape or tiny_shape(), 1).to_plain()
    options = {k: changes.pop(k) for k in list(changes) if k in EngineOptions.model_fields}
    return TrainPlan.from_plain(plain | changes | {"options": plain["options"] | options})


def tiny_engine(
    plan: TrainPlan | None = None, shape: ModelShape | None = None, device: str = "cpu"
) -> TorchEngine:
    shape = shape or tiny_shape()
    engine = TorchEngine(shape, plan or tiny_plan(shape), 0, ProcessGroup(0, 1), device)
    engine.begin(has_same_weights=True)
    return engine


def train(engine: TorchEngine, shards: Path, steps: int = 6, micro_batch: int = 2) -> list[float]:
    """Take some steps; return their losses."""
    batches = RankBatches(ShardSet(shards), "s", BATCH, micro_batch)
    rate = 1e-2
    return [engine.step(list(batches.at(n * BATCH)), rate)[0] for n in range(steps)]
