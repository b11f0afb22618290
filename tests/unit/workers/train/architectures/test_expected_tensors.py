"""The tensors that a command expects by name are those that transformers writes into files."""

import json
from typing import Any

import pytest
from transformers import AutoConfig

from jupiterd.cycle.training.tensor_shapes import KNOWN, expected_tensors
from jupiterd.workers.train.architectures.skeleton import skeleton

SIZES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 0,
    "pad_token_id": 0,
}  # fmt: skip
OF_GPT2: dict[str, Any] = {
    "vocab_size": 64, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32,
}  # fmt: skip
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    {"head_dim": 8, "tie_word_embeddings": False, "n_inner": 20},
)


def fields(kind: str, variant: dict[str, Any]) -> dict[str, Any]:
    left_out = {"gpt2": {"head_dim"}, "gpt_neox": {"head_dim", "num_key_value_heads"}}
    found = {**(OF_GPT2 if kind == "gpt2" else SIZES), **variant}
    return {name: value for name, value in found.items() if name not in left_out.get(kind, ())}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_every_name_and_shape_is_that_of_transformers(kind: str, variant: dict[str, Any]):
    given = fields(kind, variant)
    config = AutoConfig.for_model(kind, **given)
    made = skeleton(config)
    names = made.names_in_files()
    wanted = {names[name]: shape for name, shape in made.shapes.items()}
    assert expected_tensors(json.loads(config.to_json_string(use_diff=False))) == wanted
    assert expected_tensors({"model_type": kind, **given}) in (wanted, None), "what goes unsaid"


def test_sizes_that_are_not_said_are_not_guessed():
    assert expected_tensors({"model_type": "llama", "hidden_size": 16}) is None
    assert expected_tensors({"model_type": "bloom", **SIZES}) is None
