"""A model that is to write is refused by its configuration, before its weights are fetched."""

from typing import Any

import pytest

from jupiterd.cycle.engine_options import DeviceAbilities
from jupiterd.cycle.generation.writer_needs import check_writer, weight_bytes
from jupiterd.errors import TooLargeForDeviceError, UsageError
from tests.unit.cycle.training.presets import ONE_MILLION

CPU = DeviceAbilities("torch", "cpu", 8 << 30)
MAC = DeviceAbilities("mlx", "gpu", 16 << 30, ram_bytes=24 << 30)
SEVEN_BILLION = {
    "model_type": "llama", "vocab_size": 32_000, "hidden_size": 4_096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "intermediate_size": 11_008, "tie_word_embeddings": False,
}  # fmt: skip


def check(*devices: DeviceAbilities, **changed: Any) -> None:
    check_writer("oak", SEVEN_BILLION | changed, ONE_MILLION.recipe, devices)


def test_weights_are_held_in_fp32_on_a_cpu_and_in_half_of_that_elsewhere() -> None:
    assert weight_bytes(1_000_000_000, MAC) == 2_000_000_000
    assert 4_000_000_000 < weight_bytes(1_000_000_000, CPU) < 4_500_000_000


def test_one_machine_that_has_room_is_enough() -> None:
    with pytest.raises(
        TooLargeForDeviceError, match=r"oak needs 27\.4 GB .* has 8\.6 GB"
    ) as caught:
        check(CPU)
    assert "--generator http://" in caught.value.hint
    check(CPU, MAC)
    check(CPU, num_hidden_layers=2)
    check(DeviceAbilities("torch", "cuda", 0))


def test_what_nobody_could_load_is_refused_unless_mlx_may_know_it() -> None:
    with pytest.raises(UsageError, match="is a 'lama' model") as caught:
        check(CPU, model_type="lama")
    assert "train" not in caught.value.message + caught.value.hint, "it is to write"
    check(MAC, CPU, model_type="lama")


@pytest.mark.parametrize(
    "more", [{"quantization_config": {"bits": 4}}, {"text_config": {"model_type": "llama"}}]
)
def test_what_its_own_library_must_say_is_left_to_it(more: dict[str, Any]) -> None:
    check(CPU, **more)
