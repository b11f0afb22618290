"""A model that is to write is refused by its configuration, before its weights are fetched."""

from typing import Any

import pytest

from jupiterd.cycle.generation.writer_needs import check_writer, writer_need
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.plan import shape_of_config
from jupiterd.errors import TooLargeForDeviceError, UsageError
from tests.support.cycle.presets import ONE_MILLION

CPU = DeviceAbilities("torch", "cpu", 8 << 30)
MAC = DeviceAbilities("mlx", "gpu", 16 << 30, ram_bytes=24 << 30)
CARD = DeviceAbilities("torch", "cuda", 24 << 30)
SMOLLM2 = {
    "model_type": "llama", "vocab_size": 49_152, "hidden_size": 576, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1_536,
    "max_position_embeddings": 8_192, "tie_word_embeddings": True,
}  # fmt: skip
SEVEN_BILLION = {
    "model_type": "llama", "vocab_size": 32_000, "hidden_size": 4_096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "intermediate_size": 11_008, "tie_word_embeddings": False,
}  # fmt: skip


def check(*devices: DeviceAbilities, **changed: Any) -> None:
    check_writer("oak", SEVEN_BILLION | changed, ONE_MILLION.recipe, devices)


@pytest.mark.parametrize(
    ("texts", "prompt", "new", "measured_mib"),
    [(1, 400, 16, 978), (8, 400, 16, 1312), (1, 2000, 32, 1155), (4, 1000, 16, 1436),
     (16, 300, 8, 1303)],
)  # fmt: skip
def test_a_process_that_writes_takes_what_is_reckoned(
    texts: int, prompt: int, new: int, measured_mib: int
) -> None:
    """Of SmolLM2 with transformers on a CPU: the most resident memory once it was loaded."""
    shape = shape_of_config("model", SMOLLM2, ONE_MILLION.recipe)
    need = writer_need(shape, CPU, texts, prompt, new)
    assert need.total / (measured_mib << 20) == pytest.approx(1, abs=0.11)


def test_numbers_take_half_the_room_elsewhere_and_a_card_holds_no_program() -> None:
    shape = shape_of_config("model", SEVEN_BILLION, ONE_MILLION.recipe)
    cpu, mac, card = (writer_need(shape, each) for each in (CPU, MAC, CARD))
    assert cpu.weights == 2 * mac.weights == 2 * card.weights
    assert cpu.activations == 2 * mac.activations > 2e9, "half a GB for each thousand tokens"
    assert (cpu.program > mac.program > card.program) == (card.program == 0)


@pytest.mark.parametrize("told", ["lots", [1], float("inf"), 0, None])
def test_positions_that_are_no_number_count_as_many_as_usual(told: object) -> None:
    said, silent = (
        shape_of_config("model", SEVEN_BILLION | each, ONE_MILLION.recipe)
        for each in ({"max_position_embeddings": told}, {})
    )
    assert writer_need(said, CPU).total == writer_need(silent, CPU).total


def test_a_model_holds_no_more_text_than_it_has_positions() -> None:
    short, silent, long = (
        shape_of_config("model", SEVEN_BILLION | said, ONE_MILLION.recipe)
        for said in ({"max_position_embeddings": 1_024}, {}, {"max_position_embeddings": 131_072})
    )
    needs = [writer_need(shape, MAC).activations for shape in (short, silent, long)]
    assert needs == sorted({*needs})
    assert writer_need(short, MAC) == writer_need(short, MAC, 1, 9_000, 9_000)


def test_one_machine_that_has_room_is_enough() -> None:
    with pytest.raises(
        TooLargeForDeviceError, match=r"oak needs 30\.4 GB .* has 8\.6 GB"
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
