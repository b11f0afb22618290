"""Shapes from Hugging Face's configurations, and what each engine can train."""

from typing import Any

import pytest

from jupiterd.cycle.architectures import check_engine, parameter_count
from jupiterd.cycle.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from tests.unit.cycle.test_memory import PRESETS

GPT2: dict[str, Any] = {
    "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12,
    "n_head": 12,
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 8192,
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 1024, "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5e5},
}  # fmt: skip


def shape(config: dict[str, Any]) -> ModelShape:
    return shape_of_config("theirs", config, PRESETS["1m"].recipe)


def test_gpt2_says_its_sizes_in_its_own_words():
    found = shape(GPT2)
    assert (found.hidden, found.layers, found.heads, found.ff) == (768, 12, 12, 3072)
    assert parameter_count(found) == 124_439_808


def test_llamas_words_are_most_architectures():
    found = shape(LLAMA)
    assert (found.kv_heads, found.head_dim, found.rope_theta, found.tied) == (2, 64, 5e5, False)
    assert found.seq_len == 1024, "longer sequences are asked for"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_embd": None}, "no hidden_size"),
        ({"n_layer": "twelve"}, "no num_hidden_layers"),
        ({"vocab_size": 1_048_577}, "a vocabulary of 1,048,577"),
    ],
)
def test_a_configuration_that_can_t_be_trained_is_refused(changes: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words) as caught:
        shape(GPT2 | changes)
    assert caught.value.hint


def test_mlx_refuses_what_it_can_t_load():
    check_engine("mlx", "qwen3")
    check_engine("torch", "gpt2")
    with pytest.raises(UsageError, match="MLX can't load a gpt2 model") as caught:
        check_engine("mlx", "gpt2")
    assert "--engine torch" in caught.value.hint
