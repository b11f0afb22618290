"""What adapters keep for the backward pass, and what they cost."""

from typing import Any

import pytest

from jupiterd.cycle.training.activations.adapter_activations import Widths, adapted_layers
from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.adapters.adapter_size import adapter_parameters
from jupiterd.cycle.training.architectures import matrix_parameters
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import Fit, flops_per_token, memory_need, plan_that_fits
from jupiterd.cycle.training.plan import ModelShape, derive, shape_of_config
from jupiterd.errors import TooLargeForDeviceError
from tests.bench.train.memory_peaks import ADAPTERS, GOAL, Case, planned
from tests.bench.train.random_models import config_of
from tests.support.workers.tiny_run import tiny_shape

RECIPE = tiny_shape().recipe
SMOLLM2 = shape_of_config("smollm2-135m", config_of("smollm2-135m"), RECIPE)
FP32 = Widths(4, 4, is_mlx=False)
PEAKS_MIB = {
    "LoRA all": 1_573,
    "LoRA all, 3 x 512": 4_480,
    "LoRA attention": 2_903,
    "LoRA q+v": 2_776,
    "LoRA of 8 layers": 2_395,
    "LoRA beside 4 bits": 1_397,
    "LoRA beside 8 bits": 1_309,
}
"""Of worker processes on a Linux machine of two cores, by `make bench-train ONLY=memory`."""
MLX_PEAKS_MIB = {
    "LoRA MLX all": 1_074,
    "LoRA MLX q+v": 1_394,
    "LoRA MLX 8 layers": 1_244,
}
"""Of MLX's own memory, CPU."""


def layers_of(lora: str, widths: Widths = FP32, shape: ModelShape = SMOLLM2) -> Any:
    return adapted_layers(shape, parse_adapter(lora), widths)


def case(name: str) -> Case:
    return next(each for each in ADAPTERS if each.name == name)


@pytest.mark.parametrize("name", PEAKS_MIB)
def test_the_plan_of_an_adapter_on_torch_is_within_a_tenth_of_the_measured_peak(name: str):
    assert planned(case(name)).total / 2**20 == pytest.approx(PEAKS_MIB[name], rel=GOAL)


@pytest.mark.parametrize("name", MLX_PEAKS_MIB)
def test_the_plan_of_an_adapter_on_mlx_is_within_a_tenth_of_the_measured_peak(name: str):
    assert planned(case(name)).on_device / 2**20 == pytest.approx(MLX_PEAKS_MIB[name], rel=GOAL)


def test_a_layer_keeps_the_inputs_of_adapted_matrices_norms_and_attention():
    h, q, k, f, heads, rank = 576, 576, 192, 1536, 9, 16
    kept = layers_of("rank=16").each
    assert kept == 16 * h + 8 * q + 8 * k + 4 * heads + 16 * f + 4 * rank * 7
    values = layers_of("rank=16,targets=q_proj+v_proj").each
    assert values == 12 * h + 8 * q + 8 * k + 4 * heads + 12 * f + 4 * rank * 2


def test_nothing_is_kept_below_the_first_adapter():
    whole, few = layers_of("rank=8"), layers_of("rank=8,layers=5")
    assert (whole.layers, few.layers) == (30, 5)
    assert few.total == few.first + 4 * few.each


def test_the_first_layer_keeps_nothing_of_what_comes_before_its_adapters():
    behind = layers_of("rank=8,targets=mlp")
    attention_and_input = 4 * 576 + 8 * (576 + 192) + 4 * 9
    assert behind.each - behind.first == attention_and_input + 4 * 576
    assert layers_of("rank=8,targets=down_proj").first == 4 * 1536 + 4 * 8


def test_mlx_keeps_scores_and_what_its_activation_computed():
    torch, mlx = layers_of("rank=8"), layers_of("rank=8", Widths(4, 4, is_mlx=True))
    assert mlx.each - torch.each == 4 * 9 * SMOLLM2.seq_len + 4 * 1536


def test_a_layer_that_is_computed_again_has_the_room_of_the_logits():
    options = derive(SMOLLM2, 1).options.model_copy(update={"adapter": parse_adapter("rank=8")})
    plan = derive(SMOLLM2, 1).model_copy(update={"options": options, "micro_batch_sequences": 1})
    cpu = DeviceAbilities("torch", "cpu", 0)
    need = memory_need(SMOLLM2, plan, "fp32", gradient_checkpointing=True, device=cpu)
    assert need.activations == SMOLLM2.seq_len * (30 * 4 * 576 + 3 * 4 * 576)
    assert need.logits > SMOLLM2.seq_len * layers_of("rank=8").each


def test_frozen_weights_cost_four_operations_and_those_below_the_first_adapter_two():
    adapter, output = parse_adapter("rank=16"), 4 * SMOLLM2.vocab_size * SMOLLM2.hidden
    scores = 12 * 30 * 9 * 64 * SMOLLM2.seq_len
    matrices = matrix_parameters(SMOLLM2)
    own = 6 * adapter_parameters(SMOLLM2, adapter)
    assert flops_per_token(SMOLLM2, adapter) == 4 * matrices + output + scores + own
    few = parse_adapter("rank=16,layers=3")
    own = 6 * adapter_parameters(SMOLLM2, few)
    back = (2 * matrices + 2 * scores // 3) // 10
    assert flops_per_token(SMOLLM2, few) == 2 * matrices + scores // 3 + back + output + own
    assert flops_per_token(SMOLLM2, few) < flops_per_token(SMOLLM2, adapter)
    assert flops_per_token(SMOLLM2, adapter) < flops_per_token(SMOLLM2)


LLAMA_8B = {
    "model_type": "llama", "vocab_size": 128_256, "hidden_size": 4_096, "num_hidden_layers": 32,
    "intermediate_size": 14_336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "max_position_embeddings": 131_072, "rope_theta": 500_000.0, "tie_word_embeddings": False,
}  # fmt: skip
"""Of Llama-3.1-8B."""
MISTRAL_7B = {
    "model_type": "mistral", "vocab_size": 32_768, "hidden_size": 4_096, "num_hidden_layers": 32,
    "intermediate_size": 14_336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "max_position_embeddings": 32_768, "tie_word_embeddings": False, "sliding_window": None,
}  # fmt: skip
"""Of Mistral-7B-v0.3."""
MAC_16 = DeviceAbilities("mlx", "gpu", 10_923 << 20, has_bf16=True, ram_bytes=16 << 30)
MAC_32 = DeviceAbilities("mlx", "gpu", 24 * 10**9, has_bf16=True, ram_bytes=32 << 30)


def fit_of(config: dict[str, Any], lora: str, device: DeviceAbilities, seq_len: int = 1024) -> Fit:
    shape = shape_of_config("given", config, RECIPE).model_copy(update={"seq_len": seq_len})
    plan = derive(shape, 1)
    options = plan.options.model_copy(update={"adapter": parse_adapter(lora)})
    changes = {"options": options, "batch_sequences": 8, "micro_batch_sequences": 2}
    return plan_that_fits(shape, plan.model_copy(update=changes), device)


def test_seven_billion_parameters_at_4_bits_fit_24_gb():
    fit = fit_of(MISTRAL_7B, "rank=16,quantize=4bit", MAC_32)
    assert fit.need.on_device < 0.9 * MAC_32.memory_bytes
    assert fit.need.weights == pytest.approx(0.5625 * 6.98e9 + 2 * 0.27e9 + 6 * 42e6, rel=0.02)
    assert fit.changes == ("gradient checkpointing",)


def test_eight_billion_at_4_bits_fit_what_macos_lends_of_16_gb_with_checkpointing():
    fit = fit_of(LLAMA_8B, "rank=16,quantize=4bit", MAC_16)
    assert "gradient checkpointing" in fit.changes
    assert fit.need.on_device < 0.9 * MAC_16.memory_bytes
    assert fit.need.total < 0.9 * MAC_16.ram_bytes


def test_eight_billion_in_bf16_are_refused_there_with_the_option_that_makes_them_fit():
    with pytest.raises(TooLargeForDeviceError) as caught:
        fit_of(LLAMA_8B, "rank=16", MAC_16)
    assert caught.value.hint is not None
    assert caught.value.hint.split("; or ")[0] == "--quantize 4bit"


def test_sequences_that_are_too_long_are_refused_with_shorter_ones():
    with pytest.raises(TooLargeForDeviceError) as caught:
        fit_of(LLAMA_8B, "rank=16,quantize=4bit", MAC_16, seq_len=8_192)
    assert "--seq-len 2048" in (caught.value.hint or "")


def test_a_rank_that_is_too_large_fits_with_fewer_layers():
    with pytest.raises(TooLargeForDeviceError) as caught:
        fit_of(LLAMA_8B, "rank=128,quantize=4bit", MAC_16)
    assert (caught.value.hint or "").split("; or ")[0] == "--lora with layers=16"
