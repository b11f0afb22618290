"""Weights of other people's folders are read as `from_pretrained` reads them, under any names."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from jupiterd.workers.train.checkpoints.checkpoint import load_weights, write_model
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, make_inputs, tiny_shape

SIZES: Mapping[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
EXPERTS: Mapping[str, Any] = {
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
}  # fmt: skip
KINDS: Mapping[str, Mapping[str, Any]] = {
    "gpt_neox": {"intermediate_size": 128},
    "mixtral": EXPERTS,
    "qwen2_moe": EXPERTS,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "gemma3_text": {"head_dim": 8},
    "phi3": {},
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(make_inputs(tmp_path_factory.mktemp("inputs"))["tokenizer"])


def theirs(kind: str, **changes: Any) -> Any:
    torch.manual_seed(3)
    config = AutoConfig.for_model(kind, **{**SIZES, **KINDS.get(kind, {}), **changes})
    return AutoModelForCausalLM.from_config(config).eval()


def shape_in(folder: Path) -> ModelShape:
    config = json.loads((folder / "config.json").read_text())
    shape = shape_of_config("theirs", config, tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def begun_with(folder: Path) -> TorchEngine:
    shape = shape_in(folder)
    engine = tiny_engine(tiny_plan(shape), shape)
    load_weights(folder, engine)
    return engine


def assert_says_the_same(engine: TorchEngine, model: Any) -> None:
    ids = torch.randint(1, VOCAB, (SEQ_LEN,))
    with torch.no_grad():
        expected = model(ids[None], use_cache=False).logits[0, -1].numpy()
    np.testing.assert_allclose(engine.logits(ids.numpy(), engine.weights()), expected, atol=2e-6)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_folder_as_transformers_writes_it_is_read_and_one_of_ours_read_by_transformers(
    tmp_path: Path, tokenizer: Path, kind: str
):
    model = theirs(kind)
    model.save_pretrained(tmp_path / "theirs")
    engine = begun_with(tmp_path / "theirs")
    assert_says_the_same(engine, model)
    write_model(tmp_path / "ours", engine.config, engine.weights(), tokenizer)
    read: Any = AutoModelForCausalLM.from_pretrained
    again, said = read(tmp_path / "ours", output_loading_info=True)
    assert not said["missing_keys"] | said["unexpected_keys"] | said["mismatched_keys"]
    assert_says_the_same(engine, again.eval())
    assert_says_the_same(begun_with(tmp_path / "ours"), model)


def test_files_of_pythia_hold_the_output_layer_by_its_name_there(tmp_path: Path, tokenizer: Path):
    model = theirs("gpt_neox")
    model.save_pretrained(tmp_path / "theirs")
    engine = begun_with(tmp_path / "theirs")
    write_model(tmp_path / "ours", engine.config, engine.weights(), tokenizer)
    names = load_file(tmp_path / "ours" / "model.safetensors").keys()
    assert names == load_file(tmp_path / "theirs" / "model.safetensors").keys()
    assert "embed_out.weight" in names
    assert "lm_head.weight" in engine.weights(), "as transformers' own parameters are called"


def test_several_files_in_bf16_are_read(tmp_path: Path):
    model = theirs("llama").to(torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert_says_the_same(begun_with(tmp_path), model.float())


def test_names_of_the_hub_without_the_body_are_read(tmp_path: Path):
    model = theirs("gpt2")
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    short = {name.removeprefix("transformer."): v for name, v in load_file(file).items()}
    save_file(short, file, metadata={"format": "pt"})
    assert_says_the_same(begun_with(tmp_path), model)


def test_where_the_configuration_says_nothing_of_ties_the_library_decides(tmp_path: Path):
    model = theirs("llama", tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config.pop("tie_word_embeddings", None)
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert not shape_in(tmp_path).tied
    assert_says_the_same(begun_with(tmp_path), model)


def test_weights_that_are_missing_are_never_drawn(tmp_path: Path):
    theirs("mixtral").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    held = load_file(file)
    lost = next(name for name in held if name.endswith("o_proj.weight"))
    del held[lost]
    save_file(held, file, metadata={"format": "pt"})
    with pytest.raises(UsageError, match=f"lacks {lost}"):
        begun_with(tmp_path)


def test_frozen_parameters_stay_as_they_are(tmp_path: Path):
    model = theirs("hrm_text", head_dim=8, num_hidden_layers=1)
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    assert frozen, "this architecture has some"
    model.save_pretrained(tmp_path)
    engine = begun_with(tmp_path)
    assert_says_the_same(engine, model)
