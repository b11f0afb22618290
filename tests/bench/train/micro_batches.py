"""What the size of a micro batch changes on a CPU: tokens per second of whole steps.

Owns the measured process, one for each engine and model, and the table. All sizes take a step each
by turns, round after round; what is told is the median. A second is one of processor time on one
thread, so that a busy machine changes little. The global batch is the same for all.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jupiterd.cycle.training.plan import ModelShape, derive, parse_model
from jupiterd.locations import config_folder
from jupiterd.processes.environment import worker_environment
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine
from tests.bench.train.vocabulary import engine_of

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Case:
    """A model, and the sequences of one step."""

    size: str
    seq_len: int
    batch: int
    changes: Mapping[str, int]

    def shape(self) -> ModelShape:
        """Return the model."""
        path = config_folder() / "models" / f"{self.size}.yaml"
        changes = {**self.changes, "seq_len": self.seq_len}
        return parse_model(path.read_text(encoding="utf-8")).model_copy(update=changes)


THREE_MILLION = {
    "hidden": 224, "layers": 4, "ff": 672, "heads": 4, "kv_heads": 2, "head_dim": 56,
}  # fmt: skip
CASES = {
    "1m": Case("1m", 256, 16, {}),
    "3m": Case("1m", 256, 16, THREE_MILLION),
    "25m": Case("25m", 512, 8, {}),
}


def measure(engine_name: str, case: Case, rounds: int) -> dict[int, float]:
    """Return micro batch -> tokens per second of one thread; the first round isn't counted."""
    shape = case.shape()
    plan = derive(shape, 1).model_copy(
        update={"batch_sequences": case.batch, "micro_batch_sequences": case.batch}
    )
    engine = engine_of(engine_name, shape, plan)
    engine.begin(has_same_weights=True)
    tokens = (case.batch, shape.seq_len + 1)
    ids = np.random.default_rng(0).integers(0, shape.vocab_size, tokens)
    sizes = [1 << n for n in range(case.batch.bit_length())]
    took_s: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(rounds + 1):
        for size in sizes:
            seconds = step_s(engine, ids, size)
            if number:
                took_s[size].append(seconds)
    return {n: case.batch * shape.seq_len / statistics.median(took_s[n]) for n in sizes}


def step_s(engine: TrainingEngine, ids: np.ndarray[Any, Any], size: int) -> float:
    """Return how long a step takes in micro batches of this size."""
    parts = [ids[at : at + size] for at in range(0, len(ids), size)]
    began_s = time.process_time()
    engine.step([MicroBatch(part[:, :-1], part[:, 1:]) for part in parts], 1e-4)
    return time.process_time() - began_s


def print_micro_batches(engine: str, rounds: int) -> None:
    """Print what each model does in micro batches of each size."""
    for name, case in CASES.items():
        told = subprocess.run(
            [sys.executable, "-m", __spec__.name, engine, name, str(rounds)],
            env=worker_environment("train", {"engine": engine, "threads": 1}),
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        found: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
        rates = ", ".join(f"{size}: {rate:,.0f}" for size, rate in found.items())
        what = f"{name}, {engine}, {case.batch} x {case.seq_len} tokens a step"
        print(f"  {what}; tokens/s of one thread by micro batch {rates}", flush=True)


if __name__ == "__main__":
    wanted, model, turns = sys.argv[1:]
    print(json.dumps(measure(wanted, CASES[model], int(turns))))
