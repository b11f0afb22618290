"""An adapter and its base, read as one model: by torch, by MLX, for scoring and for writing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM

from jupiterd.adapter_folder import base_beside, base_named_in, join
from jupiterd.cycle.training.adapters.adapter import adapter_shapes, parse_adapter
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.evaluate.language_model import LanguageModel
from jupiterd.workers.generate.model_folder import open_model
from jupiterd.workers.train.checkpoints.checkpoint_format import AdapterFormat
from tests.support.workers.tiny_models import write_model

IDS = [5, 9, 200, 31, 7]


def adapter_to(base: Path, folder: Path, lora: str = "rank=4,alpha=12") -> Path:
    """Write an adapter of random numbers to a model; return its folder."""
    weights = load_file(base / "model.safetensors")
    matrices = {n.removesuffix(".weight"): w.shape for n, w in weights.items() if w.ndim == 2}
    options = parse_adapter(lora).model_copy(update={"base": "c" * 64})
    chance = np.random.default_rng(3)
    tensors = {
        name: chance.standard_normal(shape, dtype=np.float32) / 4
        for name, shape in adapter_shapes(matrices, options).items()
    }
    folder.mkdir()
    for name, text in AdapterFormat(options, list(tensors)).texts(folder).items():
        (folder / name).write_text(text)
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def merged_by_hand(base: Path, adapter: Path, scale: float) -> Any:
    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    tensors = load_file(adapter / "adapter_model.safetensors")
    for name in [name for name in tensors if ".lora_A." in name]:
        path = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        product = tensors[name.replace(".lora_A.", ".lora_B.")] @ tensors[name]
        with torch.no_grad():
            model.get_submodule(path).weight += scale * torch.from_numpy(product)
    return model.eval()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


@pytest.fixture
def joined(base: Path, tmp_path: Path) -> Path:
    return join(adapter_to(base, tmp_path / "adapter"), base, tmp_path / "spool" / "model")


@torch.no_grad()
def logits(model: Any) -> Any:
    return model(torch.tensor([IDS])).logits


def test_both_lie_in_one_folder_that_has_no_weights_of_its_own(base: Path, joined: Path) -> None:
    assert base_named_in(joined) == "c" * 64
    assert base_beside(joined) == base.resolve()
    assert base_beside(base) is None
    assert json.loads((joined / "config.json").read_text())["model_type"] == "llama"
    assert not list(joined.glob("model*.safetensors"))


@pytest.mark.parametrize("text", ["{", "[]", "[" * 200_000, '{"a": "' + "b" * (1 << 20) + '"}'])
def test_an_adapter_that_can_not_be_read_names_no_base(tmp_path: Path, text: str) -> None:
    (tmp_path / "adapter_config.json").write_text(text)
    assert base_named_in(tmp_path) == ""


def test_whoever_writes_with_it_has_the_sum_of_both(base: Path, joined: Path) -> None:
    wanted = logits(merged_by_hand(base, joined, 3.0))
    assert torch.allclose(logits(open_model(joined).model), wanted, atol=1e-5)
    assert not torch.allclose(logits(open_model(base).model), wanted, atol=1e-2)


def test_whoever_scores_with_it_has_the_sum_of_both(base: Path, joined: Path) -> None:
    by_hand = logits(merged_by_hand(base, joined, 3.0))[0].log_softmax(-1)
    wanted = -sum(float(by_hand[at, IDS[at + 1]]) for at in range(len(IDS) - 1))
    rows = np.array([IDS])
    (found,) = LanguageModel(joined).row_nats(rows[:, :-1], rows[:, 1:])
    assert found == pytest.approx(wanted, rel=1e-4)


@pytest.mark.mlx
def test_mlx_has_the_same_sum(base: Path, joined: Path) -> None:
    mx = pytest.importorskip("mlx.core")
    from jupiterd.workers.mlx_folder import loaded_model

    found = np.array(loaded_model(joined)(mx.array([IDS])))
    assert np.allclose(found, logits(merged_by_hand(base, joined, 3.0)).numpy(), atol=1e-4)


def test_a_rank_stabilized_adapter_counts_by_the_root(base: Path, tmp_path: Path) -> None:
    adapter = adapter_to(base, tmp_path / "adapter", "rank=4,alpha=8,form=rslora")
    joined = join(adapter, base, tmp_path / "joined")
    wanted = logits(merged_by_hand(base, joined, 4.0))
    assert torch.allclose(logits(open_model(joined).model), wanted, atol=1e-5)


def test_an_adapter_of_another_model_is_refused(base: Path, tmp_path: Path) -> None:
    wider = write_model(tmp_path / "wider", "llama", hidden_size=64)
    joined = join(adapter_to(base, tmp_path / "adapter"), wider, tmp_path / "joined")
    with pytest.raises(CorruptArtifactError, match="of the base is"):
        open_model(joined)
