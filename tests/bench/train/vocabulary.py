"""What a large vocabulary costs: memory and processor time of a step, beside a small one's.

Owns the measured process, one for each engine and vocabulary, and the table. The model is tiny but
for its embedding, so that nearly all of it is the output layer's. Memory is the peak of the whole
process above what it had once the engine's library was imported; the same chunk of 1,024 tokens
that small vocabularies have is measured beside the one that is chosen.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jupiterd.cycle.training import memory
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.locations import config_folder
from jupiterd.processes.environment import worker_environment
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine

VOCABULARIES = (32_768, 151_936)
HIDDEN = 64
SEQUENCES, SEQ_LEN = 8, 256
STEPS = 2
ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20


@dataclass(frozen=True)
class Cost:
    """Of one step, of 2,048 tokens."""

    peak_bytes: int
    planned_bytes: int
    processor_s: float
    loss: float


def shape_of(vocabulary: int) -> ModelShape:
    small = parse_model((config_folder() / "models" / "1m.yaml").read_text(encoding="utf-8"))
    sizes = {"vocab_size": vocabulary, "seq_len": SEQ_LEN, "hidden": HIDDEN, "layers": 1}
    return small.model_copy(update=sizes)


def plan_of(shape: ModelShape) -> TrainPlan:
    changes = {"batch_sequences": SEQUENCES, "micro_batch_sequences": SEQUENCES}
    return derive(shape, 1).model_copy(update=changes)


def engine_of(name: str, shape: ModelShape, plan: TrainPlan) -> TrainingEngine:
    if name == "mlx":
        from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
        from jupiterd.workers.train.mlx.ring import Ring

        return MlxTrainingEngine(shape, plan, 0, Ring(0, 1))
    from jupiterd.workers.train.torch.process_group import ProcessGroup
    from jupiterd.workers.train.torch.torch_engine import TorchEngine

    return TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(name: str, vocabulary: int, chunk: int) -> Cost:
    """Train a few steps in this process; the first isn't timed."""
    if chunk:
        memory.LOGIT_CHUNK_BYTES = 4 * vocabulary * chunk
    shape = shape_of(vocabulary)
    plan = plan_of(shape)
    engine_of(name, shape_of(512), plan)  # imports everything
    before = peak_bytes()
    engine = engine_of(name, shape, plan)
    engine.begin(has_same_weights=True)
    ids = np.random.default_rng(0).integers(0, vocabulary, (SEQUENCES, SEQ_LEN + 1))
    batch = [MicroBatch(ids[:, :-1], ids[:, 1:])]
    loss, _ = engine.step(batch, 1e-3)
    began_s = time.process_time()
    for _ in range(STEPS):
        engine.step(batch, 1e-3)
    took_s = (time.process_time() - began_s) / STEPS
    device = DeviceAbilities(name, "cpu", 0)
    need = memory.memory_need(shape, plan, "fp32", gradient_checkpointing=False, device=device)
    return Cost(peak_bytes() - before, need.on_device, took_s, loss)


def cost(engine: str, vocabulary: int, chunk: int = 0) -> Cost:
    """Measure it in a process of its own, in a worker's environment."""
    told = subprocess.run(
        [sys.executable, "-m", __spec__.name, engine, str(vocabulary), str(chunk)],
        env=worker_environment("train", {"engine": engine, "threads": 1}),
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return Cost(**found)


def print_vocabularies(engine: str) -> None:
    """Print what each costs."""
    print(f"steps of {SEQUENCES * SEQ_LEN:,} tokens, hidden {HIDDEN}, 1 layer, fp32, AdamW")
    for vocabulary in VOCABULARIES:
        chosen = memory.logit_chunk_tokens(vocabulary)
        for chunk in sorted({chosen, memory.LOGIT_CHUNK_TOKENS}):
            found = cost(engine, vocabulary, chunk)
            print(
                f"  {engine}, {vocabulary:,} entries, {chunk:,} tokens a chunk"
                f"{'' if chunk == chosen else ' (not chosen)'}: "
                f"peak {found.peak_bytes / MIB:,.0f} MiB above the imports "
                f"(planned {found.planned_bytes / MIB:,.0f}), "
                f"{found.processor_s:.2f} s of processor time, loss {found.loss:.5f}",
                flush=True,
            )


if __name__ == "__main__":
    wanted, entries, tokens = sys.argv[1:]
    print(json.dumps(vars(measure(wanted, int(entries), int(tokens)))))
