"""How much memory ranks of an MLX ring take that hold parts of a model, beside what was planned.

python -m tests.bench.train.partition_peaks [STAGE ...]

Owns the gang and the lines. Each rank is one worker process as a daemon starts it: it takes two
steps. Two numbers are measured: the peak of the whole process (ru_maxrss), and of MLX's allocator.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.cycle.training.partition.partition import GRADIENTS, STAGES, Partition
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker
from jupiterd.protocol.frames import RunTask, TaskFailed
from tests.bench.train.measured_worker import PEAK_VARIABLE
from tests.bench.train.memory_peaks import GOAL, MIB, ROOT, Case, plan_of, planned, shape_of
from tests.support.workers.mlx_runs import free_ports
from tests.support.workers.tiny_run import make_inputs

PARTS = (24, 12)
MODEL = "25m"


def case_of(stage: int) -> Case:
    """Return the training; where gradients are cut, each layer is computed twice."""
    return Case(MODEL, MODEL, "mlx", checkpointing=stage >= GRADIENTS)


def orders(partition: Partition, inputs: Mapping[str, str], folder: Path) -> list[RunTask]:
    """Return what each rank is told, and make its folder."""
    for rank in range(len(partition.parts)):
        (folder / str(rank)).mkdir()
    ranks, case = len(partition.parts), case_of(partition.stage)
    shape = shape_of(case)
    plan = plan_of(case, shape)
    plan = plan.model_copy(update={"batch_sequences": ranks * plan.batch_sequences})
    params: dict[str, Any] = {
        "shape": shape.to_plain(),
        "plan": plan.to_plain(),
        "round": 1,
        "engine": "mlx",
        "device": "cpu",
        "threads": 1,
        "world_size": ranks,
        "ring": [f"127.0.0.1:{port}" for port in free_ports(ranks)],
        "partition": partition.to_plain(),
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


async def all_measured(partition: Partition, folder: Path) -> Sequence[dict[str, int]]:
    """Let all ranks train together."""
    shape = shape_of(case_of(partition.stage))
    inputs = make_inputs(folder, shape.vocab_size, shape.seq_len)
    return await asyncio.gather(*map(measured, orders(partition, inputs, folder)))


def print_peaks(stages: Sequence[int]) -> None:
    """Measure and print each stage."""
    for stage in stages:
        partition, case = Partition(stage, PARTS), case_of(stage)
        with tempfile.TemporaryDirectory(prefix="jupiter-partition-") as place:
            found = asyncio.run(all_measured(partition, Path(place)))
        for rank, peaks in enumerate(found):
            share, ranks = partition.share(rank), len(PARTS)
            need = need_of_part(planned(case), shape_of(case), stage, share, ranks, "mlx")
            ratios = need.total / peaks["rss"], need.on_device / peaks["mlx"]
            verdict = "reached" if all(abs(ratio - 1) <= GOAL for ratio in ratios) else "MISSED"
            print(
                f"{MODEL}, stage {stage}, share {share:.2f}: planned {need.total / MIB:,.0f}, peak "
                f"{peaks['rss'] / MIB:,.0f} MiB, {ratios[0]:.2f} x; arrays "
                f"{need.on_device / MIB:,.0f}, {peaks['mlx'] / MIB:,.0f}, {ratios[1]:.2f} x "
                f"[{1 - GOAL:.2f}-{1 + GOAL:.2f} {verdict}]",
                flush=True,
            )


if __name__ == "__main__":
    print_peaks([int(stage) for stage in sys.argv[1:]] or STAGES)
