"""The engine of one rank on MLX: that of a whole model, or of a part of one.

Owns the choice. Doesn't know what either does.
"""

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
from jupiterd.workers.train.mlx.partition.partitioned_engine import PartitionedMlxEngine
from jupiterd.workers.train.mlx.ring import Ring


def made_engine(
    shape: ModelShape,
    plan: TrainPlan,
    end_token: int,
    ring: Ring,
    partition: Partition | None = None,
) -> MlxTrainingEngine:
    """Return the engine; partition: what of the model each rank holds; None: all of it.

    Raises:
        UsageError: MLX can't train what was asked for.
    """
    if partition is None:
        return MlxTrainingEngine(shape, plan, end_token, ring)
    return PartitionedMlxEngine(shape, plan, end_token, ring, partition)
