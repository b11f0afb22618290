"""DoRA in the forms of other programs: merged as they merge it, and turned without a loss."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from jupiterd.adapter_folder import join
from jupiterd.ctl.sources.adapter_source import adapter_in, fitted
from jupiterd.cycle.training.adapters.adapter import adapter_shapes, parse_adapter
from jupiterd.errors import UsageError
from jupiterd.workers.adapters.adapter_tensors import AdapterTensors
from jupiterd.workers.adapters.write_merged import write_merged
from jupiterd.workers.adapters.write_mlx_adapter import write_mlx_adapter
from jupiterd.workers.mlx_folder import loaded_model
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.checkpoints.checkpoint import load_adapter, load_weights
from jupiterd.workers.train.checkpoints.checkpoint_format import AdapterFormat
from jupiterd.workers.train.model_config import model_config
from tests.unit.workers.train.adapters.test_adapter_engines import ENGINES, on_torch, shape_of
from tests.unit.workers.train.adapters.test_dora import PEFT, ignore_old_names, of_transformers
from tests.unit.workers.train.adapters.test_merged_adapters import IDS, logits
from tests.unit.workers.train.architectures.test_mlx_models import batch

WORDS = "rank=4,alpha=12,dropout=0.1,dora"


def base_in(folder: Path, kind: str) -> Path:
    of_transformers(kind).save_pretrained(folder)
    return folder


def adapter_in_folder(folder: Path, kind: str, words: str = WORDS) -> Path:
    """Write random numbers as our checkpoints have them; rows get other lengths than they had."""
    options = parse_adapter(words).model_copy(update={"base": "c" * 64})
    chance = np.random.default_rng(3)
    shapes = adapter_shapes(skeleton(model_config(shape_of(kind))).matrices, options)
    tensors = {
        name: np.abs(chance.standard_normal(shape, dtype=np.float32)) / 4
        for name, shape in shapes.items()
    }
    folder.mkdir()
    for name, text in AdapterFormat(options, list(tensors)).texts(folder).items():
        (folder / name).write_text(text)
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


@ignore_old_names
@pytest.mark.filterwarnings("ignore:fan_in_fan_out:UserWarning")  # peft sees it by itself
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_merged_model_is_what_peft_merges(kind: str, tmp_path: Path) -> None:
    peft: Any = pytest.importorskip("peft", reason=PEFT)
    from transformers import AutoModelForCausalLM

    base = base_in(tmp_path / "base", kind)
    adapter = adapter_in_folder(tmp_path / "adapter", kind)
    write_merged(join(adapter, base, tmp_path / "joined"), tmp_path / "merged")
    ours = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32).eval()
    whole = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(whole, adapter).merge_and_unload().eval()
    assert torch.allclose(logits(ours), logits(theirs), atol=1e-5)
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6), name


@pytest.mark.mlx
def test_the_merged_model_is_what_mlx_lm_fuses_of_the_export(tmp_path: Path) -> None:
    mx: Any = pytest.importorskip("mlx.core")
    from mlx.utils import tree_flatten, tree_unflatten
    from mlx_lm.tuner.utils import load_adapters

    base = base_in(tmp_path / "base", "llama")
    adapter = adapter_in_folder(tmp_path / "adapter", "llama")
    ours = loaded_model(join(adapter, base, tmp_path / "joined"))
    write_mlx_adapter(adapter, tmp_path / "for mlx")
    theirs: Any = load_adapters(loaded_model(base), str(tmp_path / "for mlx")).eval()
    assert np.allclose(ours(mx.array([IDS])), theirs(mx.array([IDS])), atol=1e-5)
    fused = [(n, m.fuse()) for n, m in theirs.named_modules() if hasattr(m, "fuse")]
    theirs.update_modules(tree_unflatten(fused))
    found = dict(tree_flatten(theirs.parameters()))
    for name, values in tree_flatten(ours.parameters()):
        assert np.allclose(values, found[name], rtol=1e-5, atol=1e-6), name


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_computed_beside_the_base_is_what_the_merged_model_says(
    engine: str, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    base = base_in(tmp_path / "base", "llama")
    adapter = adapter_in_folder(tmp_path / "adapter", "llama")
    write_merged(join(adapter, base, tmp_path / "joined"), tmp_path / "merged")
    whole: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    adapted = ENGINES[engine](shape_of("llama"), WORDS)
    load_adapter(adapter, adapted)
    (given,) = batch()
    wanted = whole(torch.from_numpy(given.inputs)).logits.flatten(0, 1)
    targets = torch.from_numpy(given.targets).flatten()
    loss = torch.nn.functional.cross_entropy(wanted, targets, reduction="sum")
    assert adapted.nats(batch()) == pytest.approx(loss.item(), rel=1e-5)


def test_turning_it_for_mlx_lm_and_back_loses_nothing(tmp_path: Path) -> None:
    adapter = adapter_in_folder(tmp_path / "adapter", "llama")
    write_mlx_adapter(adapter, tmp_path / "for mlx")
    said = json.loads((tmp_path / "for mlx" / "adapter_config.json").read_text())
    assert (said["fine_tune_type"], said["lora_parameters"]["dropout"]) == ("dora", 0.1)
    ours, back = AdapterTensors(adapter), AdapterTensors(tmp_path / "for mlx")
    assert back.options == ours.options
    assert back.tensors.keys() == ours.tensors.keys()
    assert all(np.array_equal(back.tensors[name], ours.tensors[name]) for name in ours.tensors)


@ignore_old_names
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_begins_with_what_peft_writes(engine: str, tmp_path: Path) -> None:
    peft: Any = pytest.importorskip("peft", reason=PEFT)
    how = {"r": 3, "lora_alpha": 6, "lora_dropout": 0.05, "use_dora": True, "use_rslora": True}
    config = peft.LoraConfig(**how, target_modules="all-linear")
    theirs = peft.get_peft_model(of_transformers("llama"), config)
    torch.manual_seed(5)
    for name, values in theirs.named_parameters():
        if "lora_" in name:
            torch.nn.init.uniform_(values, 0.01, 0.3)
    theirs.save_pretrained(tmp_path / "theirs")
    fields = model_config(shape_of("llama")).to_dict()
    options = fitted(tmp_path / "theirs", adapter_in(tmp_path / "theirs"), fields, "base")
    assert options.to_text() == "rank=3,alpha=6,form=rslora,dropout=0.05,dora"
    adapted = ENGINES[engine](shape_of("llama"), options.to_text())
    load_adapter(tmp_path / "theirs", adapted)
    written = load_file(tmp_path / "theirs" / "adapter_model.safetensors")
    assert written.keys() == adapted.weights().keys()
    (given,) = batch()
    wanted = theirs.eval()(torch.from_numpy(given.inputs)).logits.flatten(0, 1)
    targets = torch.from_numpy(given.targets).flatten()
    loss = torch.nn.functional.cross_entropy(wanted, targets, reduction="sum")
    assert adapted.nats(batch()) == pytest.approx(loss.item(), rel=1e-5)


@pytest.mark.parametrize(("held", "asked"), [(WORDS, "rank=4,alpha=12,dropout=0.1"),
                                             ("rank=4,alpha=12,dropout=0.1", WORDS)])  # fmt: skip
def test_dora_goes_on_as_dora_and_nothing_else_does(held: str, asked: str, tmp_path: Path) -> None:
    adapter = adapter_in_folder(tmp_path / "adapter", "llama", held)
    engine = on_torch(shape_of("llama"), asked)
    engine.adapter = parse_adapter(asked).model_copy(update={"base": "c" * 64})
    with pytest.raises(UsageError, match=r"use_dora is (True, not False|False, not True)"):
        load_weights(adapter, engine)
    with pytest.raises(UsageError, match="lora_magnitude_vector is"):
        load_adapter(adapter, engine)


def test_a_checkpoint_of_an_older_build_says_nothing_of_dora_and_fits(tmp_path: Path) -> None:
    adapter = adapter_in_folder(tmp_path / "adapter", "llama", "rank=4")
    said = json.loads((adapter / "adapter_config.json").read_text())
    del said["use_dora"]
    (adapter / "adapter_config.json").write_text(json.dumps(said))
    engine = on_torch(shape_of("llama"), "rank=4")
    engine.adapter = parse_adapter("rank=4").model_copy(update={"base": "c" * 64})
    load_weights(adapter, engine)
    held = load_file(adapter / "adapter_model.safetensors")
    assert all(np.array_equal(values, held[name]) for name, values in engine.weights().items())
