"""Which engine answers, and the words for those that don't."""

import pytest

from jupiterd.cluster.serving.engine_choice import (
    CPU,
    CUDA,
    LLAMA,
    METAL,
    MLX,
    ORDER,
    TRANSFORMERS,
    VLLM,
    choose_engines,
)
from jupiterd.errors import MissingExtraError, UsageError


@pytest.mark.parametrize(
    ("device", "first"), [(METAL, MLX), (CUDA, VLLM), (CPU, LLAMA)], ids=lambda each: each
)
def test_each_device_has_its_first_engine(device: str, first: str):
    assert choose_engines(device, {}).engines[0] == first


def test_a_gpu_without_vllm_answers_with_transformers():
    choice = choose_engines(CUDA, {VLLM: "it isn't installed"})
    assert choice.engines[0] == TRANSFORMERS
    assert choice.words == "transformers; not vllm: it isn't installed"


def test_a_model_that_cant_be_written_as_gguf_is_answered_by_another_engine():
    choice = choose_engines(CPU, {LLAMA: "no bert model is written as GGUF here"})
    assert choice.engines == (MLX, TRANSFORMERS)
    assert choice.passed_over == ((LLAMA, "no bert model is written as GGUF here"),)


def test_a_user_forces_an_engine():
    assert choose_engines(CPU, {}, TRANSFORMERS).engines == (TRANSFORMERS,)


def test_a_forced_engine_that_cant_answer_isnt_replaced():
    with pytest.raises(MissingExtraError, match="vllm: it isn't installed") as raised:
        choose_engines(CPU, {VLLM: "it isn't installed"}, VLLM)
    assert "pip install vllm" in raised.value.hint


def test_all_reasons_are_told_where_none_can_answer():
    hindrances = dict.fromkeys(ORDER[CPU], "it isn't installed")
    with pytest.raises(MissingExtraError, match=r"llama\.cpp: it isn't .*; mlx: .*; transformers"):
        choose_engines(CPU, hindrances)


def test_an_unknown_engine_is_told_with_the_known_ones():
    with pytest.raises(UsageError, match="no engine ollama") as raised:
        choose_engines(CPU, {}, "ollama")
    assert "llama.cpp" in raised.value.hint
