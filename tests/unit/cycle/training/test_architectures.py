"""Shapes from Hugging Face's configurations, and what each engine can train."""

from typing import Any

import pytest

from jupiterd.cycle.training.architectures import (
    can_train,
    check_engine,
    engine_for,
    parameter_count,
)
from jupiterd.cycle.training.known_architectures import SEES_AHEAD, TRAINED
from jupiterd.cycle.training.mlx_proven import LEFT_OUT, PROVEN
from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from tests.unit.cycle.training.test_memory import PRESETS

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
HRM: dict[str, Any] = LLAMA | {"model_type": "hrm_text"}


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


def test_mlx_refuses_what_it_computes_otherwise():
    check_engine("mlx", shape(LLAMA))
    check_engine("torch", shape(HRM))
    with pytest.raises(UsageError, match="MLX can't train this hrm_text model") as caught:
        check_engine("mlx", shape(HRM))
    assert "--engine torch" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "count", "nearest"),
    [
        ("mixtral", "num_local_experts", "mistral"),
        ("qwen2_moe", "num_experts", "qwen2"),
        ("qwen3_moe", "num_experts", "qwen3"),
        ("deepseek_v3", "n_routed_experts", "qwen3"),
    ],
)
def test_experts_are_left_to_torch_and_mlx_names_the_nearest_that_it_trains(
    kind: str, count: str, nearest: str
):
    experts = shape(LLAMA | {"model_type": kind, count: 8})
    assert engine_for("auto", experts) == "torch"
    with pytest.raises(UsageError, match=f"can't train this {kind} model: .*experts") as caught:
        check_engine("mlx", experts)
    assert "\n" not in caught.value.message + caught.value.hint
    assert f"the nearest that MLX trains is {nearest};" in caught.value.hint


def test_a_model_of_another_family_is_named_a_near_one_only_where_mlx_trains_none_of_its_own():
    with pytest.raises(UsageError) as caught:
        check_engine("mlx", shape(HRM))
    assert "the nearest that MLX trains is qwen3;" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        check_engine("mlx", shape(LLAMA | {"model_type": "qwen3", "attention_bias": True}))
    assert "nearest" not in caught.value.hint


def test_a_window_that_mlx_doesn_t_know_is_refused_where_sequences_are_longer():
    mistral = LLAMA | {"model_type": "mistral", "sliding_window": 512}
    assert not can_train("mlx", shape(mistral))
    assert can_train("torch", shape(mistral))
    with pytest.raises(UsageError, match="windows") as caught:
        check_engine("mlx", shape(mistral))
    assert "--seq-len 512" in caught.value.hint
    assert can_train("mlx", shape(mistral).model_copy(update={"seq_len": 512}))
    for kind in ("mistral", "gemma2"):
        silent = shape(LLAMA | {"model_type": kind, "tie_word_embeddings": True})
        longest = [silent.model_copy(update={"seq_len": count}) for count in (4096, 4097)]
        assert [can_train("mlx", each) for each in longest] == [True, False]


@pytest.mark.parametrize(
    ("changes", "words", "hint"),
    [
        ({"model_type": "bert"}, "its tokens see those behind them", "llama"),
        ({"model_type": "lama"}, "no causal language model is known by that name", "llama"),
        ({"model_type": "qwen9"}, "no causal language model is known", "qwen"),
        ({"model_type": None}, "has no model_type", "causal"),
        ({"quantization_config": {"bits": 4}}, "are quantized", "with --lora --quantize 4bit"),
        (
            {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}},
            "isn't of text alone",
            "gemma3_text",
        ),
    ],
)
def test_what_nobody_can_train_is_refused_in_one_line(
    changes: dict[str, Any], words: str, hint: str
):
    with pytest.raises(UsageError, match=words) as caught:
        shape(LLAMA | changes)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 200
    assert hint in caught.value.hint


def test_what_a_configuration_doesn_t_say_is_as_transformers_has_it():
    silent = {key: value for key, value in LLAMA.items() if key != "tie_word_embeddings"}
    assert not shape(silent).tied
    assert shape(GPT2).tied
    assert shape(silent | {"model_type": "gemma3_text"}).tied


def test_no_architecture_is_both_proven_and_left_out():
    assert not PROVEN.keys() & LEFT_OUT.keys()
    assert PROVEN.keys() <= TRAINED
    assert not TRAINED & SEES_AHEAD
