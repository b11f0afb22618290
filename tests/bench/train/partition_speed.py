"""How fast a gang trains that holds a model in parts, beside whole replicas and torch's FSDP2.

`make bench-train ONLY=partition`, or: python -m tests.bench.train.partition_speed [PARTS ...]

Owns the race and its table. All of it runs over gloo on this machine's CPU, by turns, on the same
batches. FSDP2 is torch's own: as many as layers, gathered and let go of (stage 3).
"""

import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from jupiterd.cycle.training.partition.partition import STAGES, Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.train.torch.partition.partitioned_engine import PartitionedTorchEngine
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import make_model
from jupiterd.workers.training_engine import MicroBatch
from tests.bench.train.memory_peaks import preset
from tests.support.workers.cut.torch_ranks import on_ranks
from tests.support.workers.tiny_engine import tiny_plan

SIZE, SEQ_LEN, LAYERS = "25m", 128, 4
SEQUENCES = 2
"""Of a rank's step, one at a time."""
STEPS = 3
TURNS = 2
PARTS = (1, 1)
GOAL = 0.95

Step = Callable[[Sequence[MicroBatch]], object]


def shape_of() -> ModelShape:
    """Return the model that races."""
    return preset(SIZE).model_copy(update={"seq_len": SEQ_LEN, "layers": LAYERS})


def plan_of(ranks: int) -> TrainPlan:
    """Return how it is trained."""
    return tiny_plan(
        shape_of(),
        batch_sequences=SEQUENCES * ranks,
        micro_batch_sequences=1,
        gradient_checkpointing="off",
        precision="fp32",
    )


def engine_of(group: ProcessGroup, stage: int, parts: Sequence[int]) -> TorchEngine:
    """Return an engine that holds everything, or a part."""
    shape = shape_of()
    what = (shape, plan_of(group.world_size), 0, group, "cpu")
    engine = (
        PartitionedTorchEngine(*what, Partition(stage, tuple(parts)))
        if stage
        else TorchEngine(*what)
    )
    engine.begin(has_same_weights=True)
    return engine


class TorchsOwn:
    """FSDP2 with the same model, AdamW and clipping."""

    def __init__(self, group: ProcessGroup) -> None:
        self._whole = engine_of(ProcessGroup(0, 1), 0, ())
        self._scored = cast("Any", self._whole)._scored
        mesh = init_device_mesh("cpu", (group.world_size,))
        model: Any = make_model(shape_of(), 1, 0, self._whole.options)
        self._scored.model = model
        self._scored._hidden = model.hidden
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(self._scored, mesh=mesh)
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(self, batches: Sequence[MicroBatch]) -> None:
        """Take one step."""
        for batch in batches:
            ids, targets = (torch.from_numpy(each) for each in (batch.inputs, batch.targets))
            (self._scored(ids, targets) / ids.numel() / len(batches)).backward()
        nn.utils.clip_grad_norm_(self._scored.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()


def race(group: ProcessGroup, parts: Sequence[int]) -> dict[str, tuple[float, float]]:
    """Return tokens/s of all ranks, and megabytes that this one sends in a step, by contestant."""
    engines = {stage: engine_of(group, stage, parts) for stage in (0, *STAGES)}
    steps: dict[str, Step] = {}
    for stage, engine in engines.items():
        name = f"stage {stage}" if stage else "whole replicas (DDP)"
        steps[name] = lambda batches, engine=engine: engine.step(batches, 1e-4)
    if group.world_size > 1 and len(set(parts)) == 1:
        steps["FSDP2"] = TorchsOwn(group).step
    took_s: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(TURNS + 1):
        for name, step in steps.items():
            took_s[name] += timed(step, group) if turn else timed(step, group)[:0]
    tokens = SEQUENCES * SEQ_LEN * group.world_size
    sent = {f"stage {stage}": sent_mb(engines[stage]) for stage in STAGES}
    return {name: (tokens / median(took), sent.get(name, 0.0)) for name, took in took_s.items()}


def timed(step: Step, group: ProcessGroup) -> list[float]:
    """Return how long each of some steps took."""
    found: list[float] = []
    for number in range(STEPS):
        chance = np.random.default_rng(number * group.world_size + group.rank)
        ids = chance.integers(0, shape_of().vocab_size, (SEQUENCES, 1, SEQ_LEN + 1))
        began_s = time.perf_counter()
        step([MicroBatch(each[:, :-1], each[:, 1:]) for each in ids])
        found.append(time.perf_counter() - began_s)
    return found


def sent_mb(engine: TorchEngine) -> float:
    """Return the megabytes that a rank sends in a step."""
    exchange = cast("Any", engine)._cut.exchange
    return exchange.sent_bytes / (STEPS * (TURNS + 1)) / 1e6


def print_speeds(parts: Sequence[int] = PARTS) -> None:
    """Let them race, and print what became of it."""
    by_rank = on_ranks(len(parts), race, tuple(parts))
    found = by_rank[0]
    rival = found.get("FSDP2", (0.0, 0.0))[0]
    for name, (speed, _) in found.items():
        sent = [rank[name][1] for rank in by_rank]
        told = f", sends {', '.join(f'{mb:.0f}' for mb in sent)} MB a step" if any(sent) else ""
        beside = f", {speed / rival:.2f} x FSDP2" if rival else ""
        what = f"{SIZE} of {LAYERS} layers, parts {tuple(parts)}, {name}"
        print(f"{what}: {speed:,.0f} tokens/s{beside}{told}")
    if rival:
        share = found["stage 3"][0] / rival
        print(
            f"stage 3 beside FSDP2: {share:.2f} [{GOAL} {'reached' if share >= GOAL else 'MISSED'}]"
        )
    else:
        print("FSDP2: not run, it cuts into equal parts alone")


if __name__ == "__main__":
    print_speeds(tuple(map(int, sys.argv[1:])) or PARTS)
