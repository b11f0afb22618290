"""How many tokens a second are written at batch 64, against one prompt at a time.

Owns the tiny model, the settings and the goal. Both sides run the same model on the same prompts,
each in a process of its own with the environment that a worker gets; ours of transformers stands
beside mlx-lm's `batch_generate`.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from jupiterd.processes.environment import worker_environment

GOAL = 6.0
"""Times as many tokens a second at batch 64, with batch_generate."""

UNITS = {"tokens_per_s": "tokens/s", "tokens_per_cpu_s": "tokens per second of CPU time"}
"""The second says the same on a machine that others use, too."""

BATCH = 64
ALONE = 8
"""Prompts that are written one at a time: enough for a rate."""
MAX_TOKENS = 128
PROMPT_CHARS = 128
THREADS = 1
TRIALS = 3
SHAPE: dict[str, Any] = {
    "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
}  # fmt: skip


def print_generate(_trials: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        _run("write_model", folder, {})
        print(f"generate: {_settings()}")
        for engine in ("mlx", "transformers"):
            pairs = [
                (_rates(folder, engine, 1, ALONE), _rates(folder, engine, BATCH, BATCH))
                for _ in range(TRIALS)
            ]
            alone, together = (
                {name: median(each[name] for each in side) for name in UNITS}
                for side in zip(*pairs, strict=True)
            )
            for name, unit in UNITS.items():
                gain = together[name] / alone[name]
                goal = _goal(gain) if engine == "mlx" else "no goal"
                print(
                    f"generate {engine}: {alone[name]:,.0f} {unit} one at a time, "
                    f"{together[name]:,.0f} at batch {BATCH}: {gain:.1f} times as many  [{goal}]"
                )


def _goal(gain: float) -> str:
    return f">= {GOAL:g} times {'reached' if gain >= GOAL else 'MISSED'}"


def _settings() -> str:
    shape = f"Qwen3 of {SHAPE['num_hidden_layers']} layers, width {SHAPE['hidden_size']}, fp32"
    names = ("mlx", "mlx-lm", "torch", "transformers")
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    return (
        f"{shape}; prompts of {PROMPT_CHARS} characters, {MAX_TOKENS} tokens each, T 0.8, "
        f"top-p 0.95, {THREADS} core{', pinned' * bool(_on_one_core())}, median of {TRIALS}; "
        f"{versions}"
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _rates(folder: str, engine: str, batch: int, prompts: int) -> dict[str, float]:
    told = {"engine": engine, "batch": batch, "prompts": prompts}
    return json.loads(_run("measure", folder, told))


def _on_one_core() -> list[str]:
    """Return what keeps a process on one core: MLX hands its steps to a thread of its own.

    That thread takes a third of another core where one prompt is written at a time, and next to
    nothing of one where many are: without this the two sides would have unlike means.
    """
    taskset = shutil.which("taskset")
    return [taskset, "--cpu-list", "0"] if taskset else []


def _run(what: str, folder: str, told: dict[str, Any]) -> str:
    environment = worker_environment("generate", {"threads": THREADS, **told})
    done = subprocess.run(
        [
            *_on_one_core(),
            sys.executable,
            "-m",
            "tests.bench.cycle.generate_side",
            what,
            folder,
            json.dumps(told),
        ],
        env=environment,
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1] if done.stdout else ""
