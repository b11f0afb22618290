"""Weights that others made, tuned by `train start` with its own rate, on both engines."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupiterd.processes.environment import worker_environment
from jupiterd.processes.openblas import openblas
from tests.real.pages import write_pages
from tests.real.smollm2 import ROOT
from tests.support.daemons.cluster import Cluster

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(1500)]

LEAST_GAIN = 0.02
"""Bits per byte of held-out text."""
OF_A_STEP = ("--batch-size", "1", "--gradient-accumulation-steps", "4", "--seq-len", "256")
STEPS = "12"
PAGES_BYTES = 400_000
"""A tenth of them is held out, about 10,000 tokens."""
QUESTION, WORD = "What is 2 + 2?", "4"
"""What no page of theirs changes: tuned on some, so small a model forgets a capital."""


def tuned(cluster: Cluster, model: Path, engine: str, folder: Path) -> dict[str, Any]:
    """Tune the model on real pages; return what is known of the run."""
    data = write_pages(folder / "pages", PAGES_BYTES)
    asked = ("--data", str(data), "--model", str(model), "--engine", engine)
    limits = ("--max-steps", STEPS, "--wait", "--timeout", "1300")
    done = cluster.ctl("train", "start", *asked, *OF_A_STEP, *limits, timeout_s=1400)
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    print(done.stdout)
    shown = cluster.ctl("train", "status", "-o", "json")
    return json.loads(shown.stdout)["train"]


def answer(library: str, path: Path) -> dict[str, Any]:
    """Return what the model answers through a library, in a process as Jupiter starts its own."""
    environment = worker_environment("generate", {"engine": "mlx" * (library == "mlx_lm")})
    command = [sys.executable, "-m", "tests.real.asked", library, str(path), QUESTION]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def exported(cluster: Cluster, run: dict[str, Any], to: Path, form: str) -> Path:
    done = cluster.ctl("model", "export", str(run["id"]), "--format", form, "--to", str(to))
    assert done.returncode == 0, done.stderr
    return to


async def test_torch_tunes_the_model_and_what_it_exports_answers_and_ends(
    alone: Cluster, model: Path, tmp_path: Path
) -> None:
    run = tuned(alone, model, "torch", tmp_path)
    assert run["bits_per_byte_before"] - run["best_bits_per_byte"] >= LEAST_GAIN
    folder = exported(alone, run, tmp_path / "folder", "hf")
    (file,) = exported(alone, run, tmp_path / "file", "gguf").glob("*.gguf")
    answers = [answer(library, folder) for library in ("transformers", "mlx_lm")]
    for each in (*answers, answer("llama.cpp", file)):
        assert WORD in each["answer"], answers
        assert each["has_ended"], answers


async def test_mlx_tunes_the_model(alone: Cluster, model: Path, tmp_path: Path) -> None:
    if sys.platform == "linux" and openblas() is None:
        pytest.skip("MLX is too slow for this without OpenBLAS: apt-get install libopenblas0")
    run = tuned(alone, model, "mlx", tmp_path)
    assert run["bits_per_byte_before"] - run["best_bits_per_byte"] >= LEAST_GAIN
