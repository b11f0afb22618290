"""How much memory ranks of an MLX ring take that hold parts of a model, beside what was planned.

python -m tests.bench.train.partition_peaks [--model 25m] [--parts 24:12] [STAGE ...]

Owns the gang and the lines. Each rank is one worker process as a daemon starts it: it takes three
steps. Two numbers are measured: the peak of the whole process (ru_maxrss), and of MLX's allocator.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.training.memory import MemoryNeed
from jupiterd.cycle.training.partition.partition import GRADIENTS, STAGES, Partition
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker
from jupiterd.protocol.frames import RunTask, TaskFailed
from tests.bench.train.measured_worker import PEAK_VARIABLE
from tests.bench.train.memory_peaks import GOAL, MIB, ROOT, Case, plan_of, planned, shape_of
from tests.support.workers.mlx_runs import free_ports
from tests.support.workers.tiny_run import make_inputs

STEPS = 3


@dataclass(frozen=True)
class Gang:
    """Which model is trained, and how it is cut."""

    model: str
    seq_len: int
    partition: Partition

    @property
    def ranks(self) -> int:
        return len(self.partition.parts)

    @property
    def case(self) -> Case:
        """Return the training; where gradients are cut, each layer is computed twice."""
        checkpointing = self.partition.stage >= GRADIENTS
        return Case(
            self.model, self.model, "mlx", seq_len=self.seq_len, checkpointing=checkpointing
        )

    def need(self, rank: int) -> MemoryNeed:
        """Return what is planned for a rank."""
        share, stage = self.partition.share(rank), self.partition.stage
        whole, shape = planned(self.case), shape_of(self.case)
        return need_of_part(whole, shape, stage, share, self.ranks, "mlx")


def orders(gang: Gang, inputs: Mapping[str, str], folder: Path) -> list[RunTask]:
    """Return what each rank is told, and make its folder."""
    for rank in range(gang.ranks):
        (folder / str(rank)).mkdir()
    ranks, case = gang.ranks, gang.case
    shape = shape_of(case)
    plan = plan_of(case, shape)
    more = {"batch_sequences": ranks * plan.batch_sequences, "steps": STEPS}
    plan = plan.model_copy(update=more)
    params: dict[str, Any] = {
        "shape": shape.to_plain(),
        "plan": plan.to_plain(),
        "round": 1,
        "engine": "mlx",
        "device": "cpu",
        "threads": 1,
        "world_size": ranks,
        "ring": [f"127.0.0.1:{port}" for port in free_ports(ranks)],
        "partition": gang.partition.to_plain(),
        "micro_batch_sequences": case.sequences,
    }
    return [
        RunTask("train_mlx", params | {"rank": rank}, inputs, str(folder / str(rank)))
        for rank in range(ranks)
    ]


async def measured(order: RunTask) -> dict[str, int]:
    """Let a rank train; return its peaks, in bytes."""
    output = Path(order.output_dir)
    peak = output.with_suffix(".peak")
    environment = worker_environment(order.task, order.params)
    environment |= {"PYTHONPATH": str(ROOT), PEAK_VARIABLE: str(peak)}
    log, module = output.with_suffix(".log"), "tests.bench.train.measured_worker"
    async with start_worker(order, environment, log, module=module) as worker:
        async for frame in worker.frames():
            if isinstance(frame, TaskFailed):
                raise SystemExit(frame.message)
    return json.loads(peak.read_text(encoding="utf-8"))


async def all_measured(gang: Gang, folder: Path) -> Sequence[dict[str, int]]:
    """Let all ranks train together."""
    shape = shape_of(gang.case)
    inputs = make_inputs(folder, shape.vocab_size, shape.seq_len)
    return await asyncio.gather(*map(measured, orders(gang, inputs, folder)))


def print_peaks(gang: Gang) -> None:
    """Measure a gang, and print each rank."""
    with tempfile.TemporaryDirectory(prefix="jupiter-partition-") as place:
        found = asyncio.run(all_measured(gang, Path(place)))
    for rank, peaks in enumerate(found):
        need = gang.need(rank)
        ratios = need.total / peaks["rss"], need.on_device / peaks["mlx"]
        verdict = "reached" if all(abs(ratio - 1) <= GOAL for ratio in ratios) else "MISSED"
        print(
            f"{gang.model}, stage {gang.partition.stage}, share {gang.partition.share(rank):.2f}: "
            f"planned {need.total / MIB:,.0f}, peak {peaks['rss'] / MIB:,.0f} MiB, "
            f"{ratios[0]:.2f} x; arrays {need.on_device / MIB:,.0f}, {peaks['mlx'] / MIB:,.0f}, "
            f"{ratios[1]:.2f} x [{1 - GOAL:.2f}-{1 + GOAL:.2f} {verdict}]",
            flush=True,
        )


def print_plan(gang: Gang) -> None:
    """Print what is planned for each rank of a gang that isn't run."""
    for rank in range(gang.ranks):
        need = gang.need(rank)
        print(f"{gang.model}, stage {gang.partition.stage}: planned {need.total / MIB:,.0f} MiB")


def main() -> None:
    """Read what is wanted, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", type=int, default=[*STAGES])
    parser.add_argument("--model", default="25m")
    parser.add_argument("--parts", default="24:12", help="one number for each rank")
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--plan", action="store_true", help="say what is planned, and run nothing")
    asked = parser.parse_args()
    parts = tuple(map(int, asked.parts.split(":")))
    show = print_plan if asked.plan else print_peaks
    for stage in asked.stages:
        show(Gang(asked.model, asked.seq_len, Partition(stage, parts)))


if __name__ == "__main__":
    main()
