"""Checkpoints: ordinary model folders, written all or not at all, read with checks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from jupiterd.cycle.training.plan import derive
from jupiterd.errors import CorruptArtifactError, JupiterError, UsageError
from jupiterd.workers.tensor_file import load_tensors, save_tensors
from jupiterd.workers.train.checkpoints import checkpoint
from jupiterd.workers.train.checkpoints.checkpoint import TrainingState, load_state, load_weights
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.tiny_run import make_inputs, tiny_shape

STATE = TrainingState(
    round=2, step=3, tokens=100, cursor=18, plan_hash="p", model_hash="m", rng="00"
)
IDS = [[5, 7, 250, 0, 33, 99, 1, 2, 3, 4], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]]


def engine(seed: int = 0, **changes: Any) -> TorchEngine:
    shape = tiny_shape(**changes)
    return TorchEngine(shape, derive(shape, 1, seed=seed), 0, ProcessGroup(0, 1), "cpu")


def write(folder: Path, **changes: Any) -> Path:
    """Save a tiny model with weights large enough for the rope base to matter."""
    torch_engine = engine(seed=1, **changes)
    weights = torch_engine.weights()
    torch_engine.load_weights({n: v * (8 if v.ndim > 1 else 1) for n, v in weights.items()})
    inputs = make_inputs(folder)
    target = folder / "checkpoint"
    taken = checkpoint.snapshot(torch_engine, STATE)
    checkpoint.write(taken, target, Path(inputs["tokenizer"]))
    return target


def logits(folder: Path) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        return model(torch.tensor(IDS)).logits


def test_the_folder_has_what_hugging_face_loaders_look_for(tmp_path: Path):
    folder = write(tmp_path)
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training_state",
    }
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert config["rope_theta"] == 5e4
    assert config["rope_parameters"]["rope_theta"] == 5e4
    assert not folder.with_name("checkpoint.tmp").exists()


def test_what_only_islands_have_is_in_no_other_checkpoint(tmp_path: Path):
    folder = write(tmp_path)
    state = folder / "training_state"
    assert {path.name for path in state.iterdir()} == {"state.json", "optimizer.safetensors"}
    assert "outer" not in json.loads((state / "state.json").read_text())
    assert load_state(folder) == STATE


@pytest.mark.parametrize("theta", [5e4, 1e5])
def test_transformers_loads_it_unchanged(tmp_path: Path, theta: float):
    folder = write(tmp_path, rope_theta=theta)
    ours = engine(seed=9, rope_theta=theta)
    load_weights(folder, ours)
    with torch.inference_mode():
        found = ours._model.hidden(torch.tensor(IDS)) @ ours._model.output_weight.t()
        torch.testing.assert_close(found, logits(folder), atol=1e-5, rtol=1e-5)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(tokenizer.encode("def add(a, b):\n")) == "def add(a, b):\n"


def test_the_rope_base_matters_in_this_test(tmp_path: Path):
    folder = write(tmp_path)
    before = logits(folder)
    config = json.loads((folder / "config.json").read_text())
    config["rope_theta"] = config["rope_parameters"]["rope_theta"] = 1e4
    (folder / "config.json").write_text(json.dumps(config))
    assert float((logits(folder) - before).abs().max()) > 1e-3


MLX_LOGITS = """
import sys, json, numpy
import mlx.core as mx
from pathlib import Path
from mlx_lm.utils import load_model
model, config = load_model(Path(sys.argv[1]))
numpy.save(sys.argv[2], numpy.array(model(mx.array(json.loads(sys.argv[3]))).astype(mx.float32)))
"""


@pytest.mark.full
@pytest.mark.mlx
@pytest.mark.parametrize("theta", [5e4, 1e5])
def test_mlx_computes_the_same_logits(tmp_path: Path, theta: float):
    pytest.importorskip("mlx")
    folder, result = write(tmp_path, rope_theta=theta), tmp_path / "logits.npy"
    environment = os.environ | {"MLX_DISABLE_COMPILE": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", MLX_LOGITS, str(folder), str(result), json.dumps(IDS)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=50)
    ours = torch.from_numpy(np.load(result))
    torch.testing.assert_close(ours, logits(folder), atol=1e-4, rtol=0)


def test_the_state_comes_back_as_it_was(tmp_path: Path):
    assert load_state(write(tmp_path)) == STATE


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocab_size": 400}, "vocab_size is 300, not 400"),
        ({"hidden": 64}, "hidden_size is 32, not 64"),
        ({"layers": 3}, "num_hidden_layers is 2, not 3"),
        ({"ff": 64}, r"mlp\.\w+\.weight is \[\d+, \d+\], not"),
        ({"rope_theta": 1e4}, r"rope_theta is 50000\.0, not 10000\.0"),
        ({"tied": False}, "tie_word_embeddings is True, not False"),
    ],
)
def test_a_checkpoint_of_another_size_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
):
    with pytest.raises(UsageError, match=words):
        load_weights(write(tmp_path), engine(**changes))


def test_a_checkpoint_of_another_kind_of_model_is_refused(tmp_path: Path):
    folder = write(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    with pytest.raises(UsageError, match="holds a llama model, not qwen3"):
        load_weights(folder, engine())


def _remove(path: Path) -> None:
    path.unlink()


def _load(folder: Path) -> None:
    load_state(folder)
    load_weights(folder, engine())


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("harm", [_remove, _cut])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "training_state/state.json"])
def test_a_half_written_checkpoint_is_told_from_a_whole_one(tmp_path: Path, name: str, harm: Any):
    folder = write(tmp_path)
    harm(folder / name)
    with pytest.raises(CorruptArtifactError, match=f"{Path(name).name} can't be read"):
        _load(folder)


def test_moments_that_are_missing_are_named(tmp_path: Path):
    folder = write(tmp_path)
    path = folder / "training_state" / "optimizer.safetensors"
    tensors = load_tensors(path)
    _, *others = tensors
    save_tensors({name: tensors[name] for name in others}, path)
    with pytest.raises(CorruptArtifactError, match="no moments for model"):
        checkpoint.load_moments(folder, engine(), 3)


@pytest.mark.parametrize("failing_at", range(1, 9))
def test_a_save_that_breaks_off_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_at: int
):
    calls = 0
    whole = checkpoint._sync

    def breaking(path: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == failing_at:
            raise OSError(28, "No space left on device")
        whole(path)

    monkeypatch.setattr(checkpoint, "_sync", breaking)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path)
    assert not (tmp_path / "checkpoint").exists()
    monkeypatch.undo()
    assert write(tmp_path).is_dir(), "what was left behind doesn't stand in the way"


def test_every_refusal_has_a_hint(tmp_path: Path):
    with pytest.raises(JupiterError) as caught:
        load_weights(write(tmp_path), engine(hidden=64))
    assert "same size" in caught.value.hint
