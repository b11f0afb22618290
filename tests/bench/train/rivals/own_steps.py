"""Steps of our own, as a rank takes them, but for what it tells its daemon.

Owns that loop for whatever is measured beside rivals. Doesn't know what is loaded before it.
"""

from collections.abc import Callable
from pathlib import Path

from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.workers.training_engine import TrainingEngine

Ended = Callable[[], None]
"""Called after each step; the next one begins when it returns."""


def take_steps(engine: TrainingEngine, plan: TrainPlan, shards: Path, ended: Ended) -> None:
    """Train an engine that is loaded through a plan's steps."""
    from jupiterd.workers.tokens.shards import ShardSet
    from jupiterd.workers.train.batches import RankBatches
    from jupiterd.workers.train.loop import TrainingLoop

    engine.begin(has_same_weights=True)
    sizes = plan.batch_sequences, plan.micro_batch_sequences
    batches = RankBatches(ShardSet(shards), "bench", *sizes)
    TrainingLoop(engine, plan, batches, lambda: False, lambda _: ended()).run(0)
