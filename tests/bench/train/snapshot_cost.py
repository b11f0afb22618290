"""What copies of a lone rank's state cost: steps of one training by turns with a copy and without.

python -m tests.bench.train.snapshot_cost [SIZE...]

Owns the turns and the line for each size. Steps of 2,048 tokens are far shorter than those of a
preset's own batch: what is said here is the most that a copy costs.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from jupiterd.cycle.base.snapshot_pace import SPEED_SHARE, steps_between
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import derive
from jupiterd.processes.snapshot_memory import SnapshotMemory
from jupiterd.protocol.shared_snapshot import Description
from jupiterd.protocol.training_values import TrainingProgress
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.checkpoints.shared_snapshots import SharedSnapshots
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.bench.figure import machine
from tests.bench.train.single import preset, write_shards

STEPS = {"1m": 60, "25m": 8}
SEQUENCES, LENGTH, MICRO = 8, 256, 4


@dataclass(frozen=True)
class Cost:
    """Medians of one training, in seconds of CPU and of the clock."""

    with_copy: tuple[float, float]
    without: tuple[float, float]
    copy: tuple[float, float]

    def line(self, size: str, parameters: int) -> str:
        """Return it as people read it."""
        share = [copy / step for copy, step in zip(self.copy, self.without, strict=True)]
        every = steps_between(self.copy[1], self.without[1])
        slower = self.with_copy[0] / self.without[0] - 1
        return (
            f"{size}, {parameters:,} parameters, {SEQUENCES * LENGTH:,} tokens a step: a step "
            f"{self.without[0]:.3f} s of CPU, {self.with_copy[0]:.3f} with a copy ({slower:+.1%}); "
            f"a copy {self.copy[0] * 1e3:.1f} ms of CPU, {share[0]:.2%} of a step ({share[1]:.2%} "
            f"by the clock): one in {every} for {SPEED_SHARE:.0%}"
        )


def measured(size: str) -> Cost:
    """Train, and copy the state after every other step."""
    shape = preset(size).model_copy(update={"seq_len": LENGTH})
    plan = derive(shape, 1).model_copy(update={"batch_sequences": SEQUENCES})
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name:
        folder = Path(name)
        write_shards(folder / "shards", shape)
        engine = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
        engine.batch_sequences = SEQUENCES
        batches = RankBatches(ShardSet(folder / "shards"), "s", SEQUENCES, MICRO)
        engine.begin(has_same_weights=True)
        with SnapshotMemory(folder) as memory:
            engine.step(list(batches.at(0)), 1e-4)
            shared = SharedSnapshots(memory.descriptors, engine)
            return _by_turns(engine, batches, shared, STEPS[size])


def _by_turns(
    engine: TorchEngine, batches: RankBatches, shared: SharedSnapshots, steps: int
) -> Cost:
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    copies: list[tuple[float, float]] = []
    for step in range(1, steps + 1):
        copies_now = step % 2 == 0
        began = _now()
        engine.step(list(batches.at(step * SEQUENCES % 300)), 1e-4)
        if copies_now:
            before = _now()
            shared.take(Description("run", TrainingProgress(step, 0, 0, 0.0), {}))
            copies.append(_since(before))
        found[copies_now].append(_since(began))
    return Cost(_middle(found[True]), _middle(found[False]), _middle(copies[2:]))


def _now() -> tuple[float, float]:
    return time.process_time(), time.monotonic()


def _since(began: tuple[float, float]) -> tuple[float, float]:
    cpu_s, clock_s = _now()
    return cpu_s - began[0], clock_s - began[1]


def _middle(values: list[tuple[float, float]]) -> tuple[float, float]:
    return median(value[0] for value in values), median(value[1] for value in values)


def main(sizes: list[str]) -> None:
    """Print one line for each size."""
    print(machine())
    for size in sizes:
        print(measured(size).line(size, parameter_count(preset(size))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(STEPS))
