"""How much memory a rank takes that holds its part of a model, beside what is planned for it."""

import resource
import sys
from dataclasses import dataclass

import numpy as np

from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import MemoryNeed, memory_need
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.train.torch.partition.partitioned_engine import PartitionedTorchEngine
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import tiny_plan

STEPS = 2
PASSES = 2
_OF_MAXRSS = 1 if sys.platform == "darwin" else 1024
"""Bytes of what `getrusage` counts in."""


@dataclass(frozen=True)
class Measured:
    """A training whose memory is measured."""

    shape: ModelShape
    partition: Partition | None = None
    checkpointing: bool = False

    @property
    def plan(self) -> TrainPlan:
        """Return a plan of one sequence at a time."""
        switch = "on" if self.checkpointing else "off"
        return tiny_plan(
            self.shape,
            batch_sequences=8,
            micro_batch_sequences=1,
            gradient_checkpointing=switch,
            precision="fp32",
        )

    def planned(self, rank: int) -> MemoryNeed:
        """Return what is planned for a rank."""
        whole = memory_need(
            self.shape,
            self.plan,
            "fp32",
            gradient_checkpointing=self.checkpointing,
            device=DeviceAbilities("torch", "cpu", 0),
        )
        if self.partition is None:
            return whole
        share, ranks = self.partition.share(rank), len(self.partition.parts)
        return need_of_part(whole, self.shape, self.partition.stage, share, ranks)


def peak_bytes(group: ProcessGroup, measured: Measured) -> int:
    """Train some steps and go through the whole state as a checkpoint does; return the peak."""
    what = (measured.shape, measured.plan, 0, group, "cpu")
    cut = measured.partition
    engine = TorchEngine(*what) if cut is None else PartitionedTorchEngine(*what, cut)
    engine.begin(has_same_weights=True)
    chance = np.random.default_rng(group.rank)
    for _ in range(STEPS):
        sequences = chance.integers(
            0, measured.shape.vocab_size, (PASSES, 1, measured.shape.seq_len)
        )
        engine.step([MicroBatch(ids, ids) for ids in sequences], 1e-4)
    for each in (engine.each_weight(), engine.each_moment()):
        for _name, _values in each:
            pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _OF_MAXRSS
