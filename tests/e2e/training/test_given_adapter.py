"""An adapter that peft wrote is trained on by daemons, and its base is found by what it names."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from jupiterd.cycle.training.adapters.adapter import adapter_shapes, parse_adapter
from jupiterd.cycle.training.adapters.adapter_size import known_matrices
from tests.support.daemons.adapter_runs import write_base
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import two_daemons, write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(300)]

STEPS, WORDS = 4, "rank=3,alpha=6,targets=q_proj+v_proj"
FIRST = 0.03
SO_NEAR = 0.02


def of_peft(folder: Path, base: Path) -> Path:
    """Write what peft would have written beside a base."""
    folder.mkdir()
    matrices = known_matrices(json.loads((base / "config.json").read_text())) or {}
    shapes = adapter_shapes(matrices, parse_adapter(WORDS))
    tensors = {name: np.full(shape, FIRST, np.float32) for name, shape in shapes.items()}
    save_file(tensors, folder / "adapter_model.safetensors")
    said = {"peft_type": "LORA", "r": 3, "lora_alpha": 6, "target_modules": r".*[qv]_proj",
            "base_model_name_or_path": str(base)}  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("engine", ["torch", pytest.param("mlx", marks=pytest.mark.mlx)])
async def test_training_begins_with_it_and_ends_with_one_of_its_form(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    theirs = of_peft(tmp_path / "theirs", base)
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "one", prefix)]) as one:
            await one.meet()
            start = ("train", "start", "--data", str(letters), "--seq-len", "64",
                     "--max-steps", str(STEPS), "--lr", "1e-3", "--engine", engine)  # fmt: skip
            looked = one.ctl(*start, "--model", str(theirs), "--dry-run")
            assert looked.returncode == 0, looked.stderr
            assert "the adapter that was given" in looked.stdout
            for given in ((str(theirs),), (str(base), "--adapter", str(theirs))):
                done = one.ctl(*start, "--model", *given, "--wait", timeout_s=200)
                assert done.returncode == 0, one.failure_text(done.stdout + done.stderr)
            assert_trained_on(exported(one, tmp_path / "out"))


async def test_islands_begin_with_it_too(tmp_path: Path) -> None:
    async with two_daemons(tmp_path) as two:
        letters = write_letters(tmp_path)
        theirs = of_peft(tmp_path / "theirs", write_base(tmp_path, letters))
        islands = f"torch:{two.leader.name} torch:{two.survivor.name}"
        done = two.cluster.ctl(
            *("train", "start", "--data", str(letters), "--model", str(theirs), "--wait"),
            *("--seq-len", "64", "--max-steps", str(STEPS), "--lr", "1e-3"),
            *("--islands", islands, "--sync-every", "2"),
            timeout_s=200,
        )
        assert done.returncode == 0, two.cluster.failure_text(done.stdout + done.stderr)
        assert_trained_on(exported(two.cluster, tmp_path / "out"))


def exported(cluster: Cluster, to: Path) -> Path:
    """Export the adapter of the newest run."""
    shown = json.loads(cluster.ctl("train", "status", "-o", "json").stdout)["train"]
    wrote = cluster.ctl("model", "export", shown["id"], "--to", str(to))
    assert wrote.returncode == 0, wrote.stdout + wrote.stderr
    return to


def assert_trained_on(folder: Path) -> None:
    said = json.loads((folder / "adapter_config.json").read_text())
    assert (said["r"], said["lora_alpha"]) == (3, 6)
    assert said["target_modules"] == ["self_attn.q_proj", "self_attn.v_proj"]
    for name, values in load_file(folder / "adapter_model.safetensors").items():
        assert 0 < np.abs(values - FIRST).max() < SO_NEAR, name
