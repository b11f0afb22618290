"""Runs that begin with an adapter that peft or mlx-lm has written, on either engine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from jupiterd.ctl.sources.adapter_source import adapter_in, fitted
from jupiterd.cycle.training.adapters.adapter import (
    AdapterOptions,
    adapter_shapes,
    module_of,
    parse_adapter,
)
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.adapters.adapter_tensors import AdapterTensors
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.checkpoints.checkpoint import load_adapter
from jupiterd.workers.train.model_config import model_config
from tests.support.workers.tiny_run import tiny_shape
from tests.unit.workers.train.adapters.test_adapter_engines import (
    ENGINES,
    base_of,
    merged,
    shape_of,
)
from tests.unit.workers.train.adapters.test_adapter_runs import (
    given,
    plan,
    tensors,
    trained,
)
from tests.unit.workers.train.architectures.test_mlx_models import batch

__all__ = ["given"]

Arrays = Mapping[str, NDArray[np.float32]]
WORDS = "rank=4,alpha=12"


def numbers(kind: str, words: str = WORDS) -> dict[str, NDArray[np.float32]]:
    matrices = skeleton(model_config(shape_of(kind))).matrices
    chance = np.random.default_rng(3)
    return {
        name: chance.standard_normal(shape, dtype=np.float32) * np.float32(0.25)
        for name, shape in adapter_shapes(matrices, parse_adapter(words)).items()
    }


def of_peft(folder: Path, found: Arrays) -> Path:
    """Write a folder as peft does: with its own words for what is usual, and in half precision."""
    folder.mkdir()
    said = {"peft_type": "LORA", "r": 4, "lora_alpha": 12, "target_modules": r".*_proj",
            "base_model_name_or_path": "some/model", "rank_pattern": {}}  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(said))
    save_file(
        {name: values.astype(np.float16) for name, values in found.items()},
        folder / "adapter_model.safetensors",
    )
    return folder


def of_mlx(folder: Path, found: Arrays) -> Path:
    folder.mkdir()
    said = {"fine_tune_type": "lora", "num_layers": 16, "lora_parameters": {"scale": 3.0}}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    turned: dict[str, NDArray[np.float32]] = {}
    for name, values in found.items():
        module, factor = module_of(name)
        turned[f"{module}.{factor.lower()}"] = np.ascontiguousarray(values.T)
    save_file(turned, folder / "adapters.safetensors")
    return folder


FOLDERS = {"peft": of_peft, "mlx": of_mlx}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_either_engine_begins_with_either_folder(folder: str, engine: str, tmp_path: Path) -> None:
    found = numbers("llama")
    written = FOLDERS[folder](tmp_path / "theirs", found)
    shape = shape_of("llama")
    adapted = ENGINES[engine](shape, WORDS)
    load_adapter(written, adapted)
    whole = ENGINES["torch"](shape, "rank=1")
    whole.load_base({name: t.numpy() for name, t in merged(shape, found, 3.0).items()})
    assert adapted.nats(batch()) == pytest.approx(whole.nats(batch()), rel=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_gpt2_s_turned_matrices_make_no_difference(engine: str, tmp_path: Path) -> None:
    found = numbers("gpt2")
    written = of_peft(tmp_path / "theirs", found)
    adapted = ENGINES[engine](shape_of("gpt2"), WORDS)
    load_adapter(written, adapted)
    for name, values in adapted.weights().items():
        assert np.allclose(values, found[name], atol=1e-3), name


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft 0.21 asks transformers by an old name
@pytest.mark.parametrize(
    "said",
    [
        {"target_modules": r".*1\.self_attn\.[qv]_proj"},
        {"target_modules": "all-linear", "use_rslora": True},
        {"target_modules": ["q_proj", "up_proj"], "r": 9, "lora_alpha": 1,
         "layers_to_transform": [1], "rank_pattern": {"q_proj": 3, "up_proj": 3},
         "alpha_pattern": {"q_proj": 6, "up_proj": 6}},
    ],
    ids=["pattern", "all-linear", "patterns of rank and alpha"],
)  # fmt: skip
@pytest.mark.parametrize("engine", ENGINES)
def test_what_peft_writes_has_the_loss_that_peft_has(
    engine: str, said: dict[str, Any], tmp_path: Path
) -> None:
    peft: Any = pytest.importorskip("peft", reason="pip install peft==0.21.2 accelerate")
    from transformers import AutoModelForCausalLM

    shape = shape_of("llama")
    whole = AutoModelForCausalLM.from_config(model_config(shape))
    whole.load_state_dict({n: torch.from_numpy(t) for n, t in base_of(shape).items()}, strict=False)
    theirs = peft.get_peft_model(whole, peft.LoraConfig(**{"r": 3, "lora_alpha": 6} | said))
    torch.manual_seed(5)
    for name, values in theirs.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(values, std=0.3)
    theirs.save_pretrained(tmp_path / "theirs")
    config = model_config(shape).to_dict()
    options = fitted(tmp_path / "theirs", adapter_in(tmp_path / "theirs"), config, "base")
    adapted = ENGINES[engine](shape, options.to_text())
    load_adapter(tmp_path / "theirs", adapted)
    wanted = theirs(torch.from_numpy(batch()[0].inputs)).logits.flatten(0, 1)
    targets = torch.from_numpy(batch()[0].targets).flatten()
    loss = torch.nn.functional.cross_entropy(wanted, targets, reduction="sum")
    assert adapted.nats(batch()) == pytest.approx(loss.item(), rel=1e-5)


def test_a_run_begins_with_it_and_its_checkpoint_is_ours(
    given: dict[str, str], tmp_path: Path
) -> None:
    matrices = skeleton(model_config(tiny_shape())).matrices
    found = {name: np.full(shape, 0.01, np.float32)
             for name, shape in adapter_shapes(matrices, parse_adapter(WORDS)).items()}  # fmt: skip
    theirs = of_peft(tmp_path / "theirs", found)
    adapter = parse_adapter(WORDS).model_copy(update={"base": "b" * 64})
    asked = given | {"adapter": str(theirs)}
    last = tmp_path / "out" / trained(asked, tmp_path / "out", plan(adapter))[-1].path
    said = json.loads((last / "adapter_config.json").read_text())
    assert said["base_model_name_or_path"] == "b" * 64
    moved = load_file(last / "adapter_model.safetensors")
    changed = [np.abs(moved[name] - 0.01).max() for name in found]
    assert 0 < max(changed) < 0.1
    half = given | {"adapter": str(theirs),
                    "checkpoint": str(tmp_path / "out" / "checkpoint-00000003")}  # fmt: skip
    again = tmp_path / "again" / trained(half, tmp_path / "again", plan(adapter))[-1].path
    one, other = tensors(last), tensors(again)
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_an_adapter_of_another_base_is_told_where_nobody_could_before(tmp_path: Path) -> None:
    written = of_peft(tmp_path / "theirs", numbers("gpt_neox"))
    with pytest.raises(UsageError, match=r"for another base: .* there, and .* beside this base"):
        load_adapter(written, ENGINES["torch"](shape_of("llama"), WORDS))


def test_what_could_not_be_trained_is_not_read_either(tmp_path: Path) -> None:
    written = of_peft(tmp_path / "theirs", numbers("llama"))
    said = json.loads((written / "adapter_config.json").read_text())
    (written / "adapter_config.json").write_text(json.dumps(said | {"bias": "all"}))
    with pytest.raises(CorruptArtifactError, match="its bias is all"):
        AdapterTensors(written)


def test_an_adapter_s_numbers_are_as_peft_has_them(tmp_path: Path) -> None:
    found = numbers("llama")
    read = AdapterTensors(of_mlx(tmp_path / "theirs", found))
    assert isinstance(read.options, AdapterOptions)
    assert read.scale == 3.0
    assert all(np.array_equal(read.tensors[name], values) for name, values in found.items())
