"""The size that is proposed for a body of text."""

import pytest

from jupiterd.cycle.runs.size_choice import TrainingPower, proposed_size
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.plan import parse_model
from jupiterd.errors import Bug
from jupiterd.locations import config_folder

PRESETS = [
    parse_model(file.read_text()) for file in sorted((config_folder() / "models").glob("*.yaml"))
]


@pytest.mark.parametrize(
    ("tokens", "size"),
    [(0, "1m"), (60_000, "1m"), (12_400_000, "1m"), (13_000_000, "25m"), (600_000_000, "100m")],
)
def test_a_model_is_as_large_as_its_text_can_feed(tokens: int, size: str) -> None:
    assert proposed_size(tokens, PRESETS).size == size


def test_the_reason_names_what_a_larger_one_needs() -> None:
    choice = proposed_size(60_000, PRESETS)
    assert choice.reason == "60,000 tokens of text; 25m needs 12.5 million"


def test_a_size_fits_the_smallest_device() -> None:
    choice = proposed_size(
        10**12, PRESETS, TrainingPower(DeviceAbilities("torch", "cuda", 6_000_000_000))
    )
    assert choice.size == "350m"
    assert choice.reason == "500m doesn't fit the smallest device's 6.0 GB"


def test_a_first_round_takes_no_longer_than_a_day() -> None:
    choice = proposed_size(10**12, PRESETS, TrainingPower(flops_per_s=1e12))
    assert choice.size == "25m"
    assert "100m would take" in choice.reason


def test_with_everything_there_is_the_largest_is_chosen() -> None:
    choice = proposed_size(10**12, PRESETS)
    assert choice.size == "1b"
    assert "the largest there is" in choice.reason


def test_of_two_as_large_the_one_for_fewer_devices_is_chosen() -> None:
    assert proposed_size(10**9, PRESETS).size == "100m"


def test_there_must_be_sizes() -> None:
    with pytest.raises(Bug):
        proposed_size(1, [])
