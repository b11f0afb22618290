"""An adapter learns as much of real pages as full tuning does: on either engine, and as islands."""

import json
import sys
from pathlib import Path

import pytest

from jupiterd.processes.openblas import openblas
from tests.real.pages import write_pages
from tests.support.daemons.cluster import Cluster
from tests.support.daemons.training_runs import two_daemons

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(5400)]

STEPS, EVERY = "16", "4"
OF_A_STEP = ("--batch-size", "1", "--gradient-accumulation-steps", "2", "--seq-len", "256")
PAGES_BYTES = 200_000
ADAPTER = ("--lora", "rank=8,alpha=16", "--lr", "4e-4")
"""Twice the usual rate: the second factor begins as zeros, and so few steps are hardly enough."""

NEAR_BPB = 0.01
"""How much more held-out text may take than after full tuning, in bits per byte."""

LEAST_GAIN = 0.01


def tuned(cluster: Cluster, *options: str) -> tuple[float, float]:
    """Tune the model; return the bits per byte that are gained, and those of all held-out text.

    What is gained is measured as it trains, on a part that islands choose otherwise.
    """
    asked = ("train", "start", *OF_A_STEP, "--max-steps", STEPS, *options)
    done = cluster.ctl(*asked, "--wait", "--timeout", "1700", timeout_s=1800)
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    shown = json.loads(cluster.ctl("train", "status", "-o", "json").stdout)["train"]
    gained = shown["bits_per_byte_before"] - shown["best_bits_per_byte"]
    print(f"{' '.join(options[4:])}: gains {gained:.4f}, {shown['val_bpb']:.4f}", flush=True)
    return gained, shown["val_bpb"]


async def test_an_adapter_learns_what_full_tuning_does_on_both_engines_and_as_islands(
    model: Path, tmp_path: Path
) -> None:
    if sys.platform == "linux" and openblas() is None:
        pytest.skip("MLX is too slow for this without OpenBLAS: apt-get install libopenblas0")
    pages = str(write_pages(tmp_path / "pages", PAGES_BYTES))
    async with two_daemons(tmp_path) as two:
        given = ("--data", pages, "--model", str(model))
        gained, full = tuned(two.cluster, *given, "--engine", "torch", "--nodes", "1")
        assert gained > LEAST_GAIN
        islands = f"mlx:{two.leader.name} torch:{two.survivor.name}"
        for how in (
            ("--engine", "torch", "--nodes", "1"),
            ("--engine", "mlx", "--nodes", "1"),
            ("--islands", islands, "--sync-every", EVERY),
        ):
            _, found = tuned(two.cluster, *given, *ADAPTER, *how)
            assert found < full + NEAR_BPB, how
