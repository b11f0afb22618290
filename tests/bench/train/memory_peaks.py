"""How much memory training takes, beside what was planned for it.

`make bench-train ONLY=memory`, or: python -m tests.bench.train.memory_peaks [NAME ...]

Owns the cases and the table. Each case is one worker process as a daemon starts it: it reads its
data, takes two steps, and writes its last checkpoint. The measured peak is that of the whole
process (ru_maxrss), or of the GPU's own allocator where there is one.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.engine_options import DeviceAbilities, EngineOptions
from jupiterd.cycle.training.memory import MemoryNeed, memory_need
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model, shape_of_config
from jupiterd.locations import config_folder
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker
from jupiterd.protocol.frames import RunTask, TaskFailed
from tests.bench.train import random_models
from tests.bench.train.measured_worker import PEAK_VARIABLE
from tests.support.workers.tiny_run import make_inputs

STEPS = 2
GOAL = 0.10
ROOT = Path(__file__).resolve().parents[3]
GIVEN = "JUPITER_BENCH_MODEL"
"""Names the folder of a public model; its cases are left out without it."""
MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """One training."""

    name: str
    model: str
    """A preset, `given`: the folder that GIVEN names, or one of `random_models`."""
    engine: str = "torch"
    sequences: int = 1
    """Of a micro batch; a step has two of them."""
    seq_len: int = 256
    checkpointing: bool = False
    vocab_size: int = 0
    """Another than the preset's; 0: its own."""
    micro_batches: int = 2
    options: tuple[tuple[str, str], ...] = ()
    lora: str = ""
    """The adapter that is trained; empty: all weights are."""


CASES = (
    Case("25m", "25m", sequences=2, seq_len=1024),
    Case("25m, shorter", "25m", sequences=3, seq_len=384),
    Case("gpt2-medium", "gpt2-medium", seq_len=256),
    Case("given fp32", "given"),
    Case("given fp32, checkpointing", "given", checkpointing=True),
    Case("given on MLX", "given", engine="mlx"),
    Case("1m of 151,936 entries", "1m", sequences=8, vocab_size=151_936),
    Case("1m of 151,936 entries on MLX", "1m", "mlx", sequences=8, vocab_size=151_936),
    Case("1m of 32,768 entries on MLX", "1m", "mlx", sequences=8, vocab_size=32_768),
)
"""What the plan's figures were fitted to."""

ADAPTERS = (
    Case("LoRA all", "smollm2-135m", seq_len=256, lora="rank=16"),
    Case("LoRA all, 3 x 512", "smollm2-135m", sequences=3, seq_len=512, lora="rank=16"),
    Case(
        "LoRA attention", "smollm2-135m", sequences=4, seq_len=256, lora="rank=8,targets=attention"
    ),
    Case("LoRA q+v", "smollm2-135m", sequences=4, seq_len=256, lora="rank=8,targets=q_proj+v_proj"),
    Case("LoRA of 8 layers", "smollm2-135m", sequences=4, seq_len=512, lora="rank=64,layers=8"),
    Case(
        "LoRA checkpointing",
        "smollm2-135m",
        sequences=4,
        seq_len=512,
        checkpointing=True,
        lora="rank=16",
    ),
    Case("LoRA beside 4 bits", "smollm2-135m", seq_len=256, lora="rank=16,quantize=4bit"),
    Case("LoRA beside 8 bits", "smollm2-135m", seq_len=256, lora="rank=16,quantize=8bit"),
    Case("LoRA 360M beside 4 bits", "smollm2-360m", seq_len=256, lora="rank=16,quantize=4bit"),
    Case("LoRA 360M", "smollm2-360m", seq_len=512, lora="rank=16"),
    Case("LoRA MLX all", "smollm2-135m", "mlx", seq_len=256, lora="rank=16"),
    Case("LoRA MLX all, 512", "smollm2-135m", "mlx", seq_len=512, lora="rank=16"),
    Case(
        "LoRA MLX q+v",
        "smollm2-135m",
        "mlx",
        sequences=2,
        seq_len=256,
        lora="rank=8,targets=q_proj+v_proj",
    ),
    Case(
        "LoRA MLX 8 layers",
        "smollm2-135m",
        "mlx",
        sequences=2,
        seq_len=384,
        lora="rank=64,layers=8",
    ),
    Case(
        "LoRA MLX checkpointing", "smollm2-135m", "mlx", 2, 512, checkpointing=True, lora="rank=16"
    ),
)

OTHERS = (
    Case("25m on MLX", "25m", "mlx", sequences=2, seq_len=512),
    Case("25m on MLX, checkpointing", "25m", "mlx", 2, 512, checkpointing=True),
    Case("given, longer", "given", seq_len=512),
    Case("given on MLX, longer", "given", "mlx", seq_len=384),
    Case("100m, Muon", "100m", sequences=2, micro_batches=1, options=(("optimizer", "muon"),)),
)
"""Others, which they weren't fitted to."""


def shape_of(case: Case) -> ModelShape:
    """Return a case's model."""
    if case.model in random_models.NAMES:
        config = random_models.config_of(case.model)
        shape = shape_of_config(case.model, config, preset("100m").recipe)
    elif case.model == "given":
        config = json.loads((Path(os.environ[GIVEN]) / "config.json").read_text(encoding="utf-8"))
        recipe = preset("100m").recipe
        shape = shape_of_config("given", config, recipe)
    else:
        shape = preset(case.model)
    changed = {"seq_len": case.seq_len, "vocab_size": case.vocab_size or shape.vocab_size}
    return shape.model_copy(update=changed)


def preset(name: str) -> ModelShape:
    """Return a model that is shipped."""
    return parse_model((config_folder() / "models" / f"{name}.yaml").read_text(encoding="utf-8"))


def plan_of(case: Case, shape: ModelShape) -> TrainPlan:
    """Return two steps, with nothing chosen by the machine."""
    chosen = {"precision": "fp32", "compile": "off", "micro_batch": "fixed"} | dict(case.options)
    options = EngineOptions.from_plain(
        {**chosen, "gradient_checkpointing": "on" if case.checkpointing else "off"}
    )
    if case.lora:
        options = options.model_copy(update={"adapter": parse_adapter(case.lora)})
    changes = {
        "steps": STEPS,
        "batch_sequences": case.sequences * case.micro_batches,
        "micro_batch_sequences": case.sequences,
        "options": options,
        "warmup_steps": 0,
        "decay_steps": 1,
        "keeps_trunk": False,
    }
    return derive(shape, 1).model_copy(update=changes)


def planned(case: Case) -> MemoryNeed:
    """Return what is planned for it."""
    shape = shape_of(case)
    plan = plan_of(case, shape)
    return memory_need(
        shape,
        plan,
        "fp32",
        gradient_checkpointing=case.checkpointing,
        device=DeviceAbilities(case.engine, "cpu", 0),
    )


async def measured(case: Case, folder: Path) -> dict[str, int]:
    """Train it in a process of its own; return the peaks, in bytes."""
    shape = shape_of(case)
    inputs = make_inputs(folder, shape.vocab_size, shape.seq_len)
    if case.model in random_models.NAMES:
        inputs["weights"] = str(random_models.write_folder(case.model, folder / "model"))
    elif case.model == "given":
        inputs["weights"] = os.environ[GIVEN]
    task = "train_mlx" if case.engine == "mlx" else "train"
    plan = plan_of(case, shape)
    params: dict[str, Any] = {
        "shape": shape.to_plain(),
        "plan": plan.to_plain(),
        "round": 1,
        "engine": case.engine,
        "device": "cpu",
        "is_tuning": "weights" in inputs,
    }
    output, peak = folder / "out", folder / "peak.json"
    output.mkdir()
    environment = worker_environment(task, params)
    environment |= {"PYTHONPATH": str(ROOT), PEAK_VARIABLE: str(peak)}
    order = RunTask(task, params, inputs, str(output))
    module = "tests.bench.train.measured_worker"
    async with start_worker(order, environment, folder / "log", module=module) as worker:
        async for frame in worker.frames():
            if isinstance(frame, TaskFailed):
                raise SystemExit(f"{case.name}: {frame.message}")
    return json.loads(peak.read_text(encoding="utf-8"))


def print_peaks(names: Sequence[str] = ()) -> None:
    """Measure and print each case."""
    for case in (*CASES, *ADAPTERS, *OTHERS):
        if names and not any(name in case.name for name in names):
            continue
        if case.model == "given" and GIVEN not in os.environ:
            print(f"{case.name}: left out, {GIVEN} names no model folder")
            continue
        with tempfile.TemporaryDirectory(prefix="jupiter-memory-") as place:
            peaks = asyncio.run(measured(case, Path(place)))
        print(_line(case, planned(case), peaks), flush=True)


def _line(case: Case, need: MemoryNeed, peaks: dict[str, int]) -> str:
    ratio = need.total / peaks["rss"]
    verdict = "reached" if abs(ratio - 1) <= GOAL else "MISSED"
    fitted = "" if case in CASES else " (not fitted)"
    others = ", ".join(f"{k} {v / MIB:,.0f}" for k, v in peaks.items() if k != "rss")
    return (
        f"{case.name}{fitted}: planned {need.total / MIB:,.0f}, peak {peaks['rss'] / MIB:,.0f} MiB"
        f"{f' ({others})' if others else ''}, {ratio:.2f} x [{1 - GOAL:.2f}-{1 + GOAL:.2f} "
        f"{verdict}]; {need}"
    )


if __name__ == "__main__":
    print_peaks(sys.argv[1:])
