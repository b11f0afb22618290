"""What MLX's engine can be asked for: as torch does it, in a process of its own."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.mlx_runs import run_to_end
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import TaskAlone, make_inputs, tiny_shape, train_params
from tests.unit.workers.train.test_mlx_train import checkpoint, losses, said, tensors

mx = pytest.importorskip("mlx.core")

pytestmark = [pytest.mark.mlx, pytest.mark.xdist_group("mlx")]

STEPS, HALF = 12, 6
TOLERANCE = 1e-4


def plan(**options: str) -> TrainPlan:
    return tiny_plan(steps=STEPS, checkpoint_every_steps=HALF, **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which one process has trained in every way."""
    folder = tmp_path_factory.mktemp("mlx")
    inputs = make_inputs(folder)
    half = checkpoint(folder, "muon", HALF)
    runs: list[dict[str, Any]] = [
        {"name": "plain", "plan": plan()},
        {"name": "muon", "plan": plan(optimizer="muon")},
        {"name": "resumed", "plan": plan(optimizer="muon"), "checkpoint": half},
        {"name": "bf16", "plan": plan(precision="bf16")},
        {"name": "saving", "plan": plan(gradient_checkpointing="on")},
        {"name": "apart", "plan": plan(document_masks="on")},
        {
            "name": "apart, saving",
            "plan": plan(document_masks="on", gradient_checkpointing="on"),
        },
        {"name": "fp16", "plan": plan(precision="fp16")},
        {"name": "gpt2", "plan": plan(), "shape": tiny_shape(architecture="gpt2", kv_heads=2)},
    ]
    given = [
        {
            "name": run["name"],
            "params": train_params(run.get("shape", tiny_shape()), run["plan"]),
            "inputs": inputs | ({"checkpoint": half} if "checkpoint" in run else {}),
            "folder": str(folder),
        }
        for run in runs
    ]
    run_to_end(given, folder, "all")
    return folder


def torch_losses(folder: Path, name: str, **options: str) -> list[float]:
    from jupiterd.workers.train.torch import torch_rank

    task = TaskAlone("train", train_params(tiny_shape(), plan(**options)), {}, folder / name)
    task.inputs = {n: Path(p) for n, p in make_inputs(folder).items()}
    task._last_progress_s = float("-inf")
    told: list[float] = []
    task.progress = lambda _done, _total, _unit, **values: told.append(values["loss"])
    torch_rank.run(task)
    return told


def largest(first: list[float], second: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


@pytest.mark.full
def test_muon_has_the_same_losses_on_both_engines(trained: Path, tmp_path: Path):
    ours = losses(said(trained, "muon"))
    assert len(ours) == STEPS
    assert largest(ours, torch_losses(tmp_path, "torch", optimizer="muon")) < TOLERANCE
    assert largest(ours, losses(said(trained, "plain"))) > 0.01, "it isn't AdamW"


@pytest.mark.full
def test_muon_goes_on_bit_identically(trained: Path):
    assert losses(said(trained, "resumed")) == losses(said(trained, "muon"))[HALF:]
    first, second = (tensors(Path(checkpoint(trained, n, STEPS))) for n in ("muon", "resumed"))
    assert all(np.array_equal(values, second[name]) for name, values in first.items())
    assert any(name.startswith("momentum.model.layers.0") for name in first)


def test_bf16_learns_as_fp32_does(trained: Path):
    rough, exact = losses(said(trained, "bf16")), losses(said(trained, "plain"))
    assert rough != exact
    assert largest(rough, exact) < 0.1


def test_checkpointing_changes_nothing_but_memory(trained: Path):
    assert largest(losses(said(trained, "saving")), losses(said(trained, "plain"))) < 1e-6


def test_documents_are_kept_apart_alike_on_both_engines(trained: Path, tmp_path: Path):
    ours = losses(said(trained, "apart"))
    assert largest(ours, torch_losses(tmp_path, "torch", document_masks="on")) < TOLERANCE
    assert largest(ours, losses(said(trained, "plain"))) > TOLERANCE, "and it makes a difference"
    assert largest(ours, losses(said(trained, "apart, saving"))) < 1e-6


def test_what_mlx_can_t_do_is_refused(trained: Path):
    assert "nothing is trained in fp16" in said(trained, "fp16")["error"]
    assert "MLX can't train this gpt2 model: feed-forward parts" in said(trained, "gpt2")["error"]
    frames = json.loads((trained / "gpt2.json").read_text())["frames"]
    assert {frame["type"] for frame in frames} == {"GangJoined", "Preparing"}, "and no step"


def test_a_loss_in_chunks_is_the_loss(monkeypatch: pytest.MonkeyPatch):
    from jupiterd.workers.train.mlx import mlx_model
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    engine = MlxTrainingEngine(tiny_shape(), plan(), 0, Ring(0, 1))
    ids = np.arange(32).reshape(2, 16)
    whole = engine._accumulate([MicroBatch(ids, ids)])
    monkeypatch.setattr(mlx_model, "logit_chunk_tokens", lambda _: 10)
    parts = engine._accumulate([MicroBatch(ids, ids)])
    assert parts[0] == pytest.approx(whole[0], rel=1e-6)
    for name, gradient in mlx_model.flat(whole[1]).items():
        found = np.array(mlx_model.flat(parts[1])[name])
        np.testing.assert_allclose(found, np.array(gradient), atol=1e-6)
