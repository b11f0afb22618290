"""Models that come quantized: which an adapter is trained beside, and how the rest are named."""

from typing import Any

import pytest

from jupiterd.cycle.training.adapters.given_quantized import (
    GivenBits,
    check_adapter_beside,
    check_given,
    check_whole,
    given_bits,
    without_quantization,
)
from jupiterd.cycle.training.architectures import can_train, check_engine, engine_for
from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from tests.support.workers.tiny_run import tiny_shape

OF_MLX: dict[str, Any] = {"group_size": 64, "bits": 4}
LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 2,
    "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2,
    "max_position_embeddings": 128, "tie_word_embeddings": True,
}  # fmt: skip


def quantized() -> ModelShape:
    return shape_of_config("mine", {**LLAMA, "quantization": OF_MLX}, tiny_shape().recipe)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"quantization": OF_MLX}, GivenBits(4, 64)),
        ({"quantization": {**OF_MLX, "bits": 8, "mode": "affine"}}, GivenBits(8, 64)),
        ({"quantization": OF_MLX, "quantization_config": OF_MLX}, GivenBits(4, 64)),
        ({"quantization": {**OF_MLX, "mode": "mxfp4"}}, None),
        ({"quantization": {**OF_MLX, "bits": 3}}, None),
        ({"quantization": {**OF_MLX, "model.layers.0.mlp.down_proj": {"bits": 8}}}, None),
        ({"quantization": {"bits": 4}}, None),
        ({"quantization": True}, None),
        ({}, None),
    ],
)
def test_plain_affine_bits_are_trained_beside_and_other_forms_are_not(
    said: dict[str, Any], found: GivenBits | None
):
    assert given_bits(said) == found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantized by GPTQ,"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantized by AWQ,"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantized by bitsandbytes,"),
        ({"quantization_config": {"quant_method": "eetq"}}, "quantized by eetq,"),
        ({"quantization_config": {"bits": 4}}, "quantized, and such"),
        ({"quantization": {**OF_MLX, "bits": 2}}, "for MLX in a form that isn't read"),
    ],
)
def test_others_are_refused_by_name_with_what_to_begin_with(said: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words) as caught:
        check_given("mine", said)
    assert "--lora --quantize 4bit" in (caught.value.hint or "")
    check_given("mine", {"quantization": OF_MLX})
    check_given("mine", {})


def test_packed_tensors_stand_for_others_by_their_names():
    found = GivenBits(4, 64).whole_shapes({
        "a.weight": (320, 8), "a.scales": (320, 1), "a.biases": (320, 1),
        "norm.weight": (64,), "b.weight": (10, 64), "b.bias": (10,),
    })  # fmt: skip
    assert found == {
        "a.weight": (320, 64), "norm.weight": (64,), "b.weight": (10, 64), "b.bias": (10,)
    }  # fmt: skip


def test_only_mlx_trains_beside_them_and_is_chosen_where_people_leave_it_open():
    shape = quantized()
    assert (can_train("torch", shape), can_train("mlx", shape)) == (False, True)
    assert engine_for("auto", shape) == "mlx"
    check_engine("mlx", shape)
    with pytest.raises(UsageError, match="torch can't train this model: its weights are quantized"):
        check_engine("torch", shape)


def test_only_an_adapter_is_trained_beside_them_and_with_the_bits_that_they_have():
    config = quantized().config
    check_adapter_beside("mine", config, is_adapter=True, quantize="none")
    check_adapter_beside("mine", LLAMA, is_adapter=False, quantize="none")
    with pytest.raises(UsageError, match="only an adapter can be trained beside them") as caught:
        check_adapter_beside("mine", config, is_adapter=False, quantize="none")
    assert (caught.value.hint or "").startswith("--lora")
    with pytest.raises(UsageError, match="--quantize 8bit: the weights of mine have 4 bits"):
        check_adapter_beside("mine", config, is_adapter=True, quantize="8bit")


def test_a_cycle_begins_with_whole_weights():
    check_whole("mine", LLAMA)
    with pytest.raises(UsageError, match="the weights of mine are quantized for MLX"):
        check_whole("mine", quantized().config)


def test_the_whole_model_has_the_same_configuration_without_them():
    said = {**LLAMA, "quantization": OF_MLX, "quantization_config": OF_MLX}
    assert without_quantization(said) == LLAMA
