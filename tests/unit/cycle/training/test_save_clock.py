"""Training is saved by the clock where its steps are slow: in virtual time."""

import pytest

from jupiterd.cycle.training.plan import ModelShape, parse_model
from jupiterd.cycle.training.save_clock import SaveClock, checkpoint_bytes, save_interval_s
from jupiterd.locations import config_folder

STEPS = 250


def preset(size: str) -> ModelShape:
    return parse_model((config_folder() / "models" / f"{size}.yaml").read_text())


def saved_steps(shape: ModelShape, step_s: float) -> list[int]:
    """Return after which steps of a long training it is saved for the sake of time."""
    clock, saved = SaveClock.of(shape, 0.0), list[int]()
    for step in range(1, STEPS + 1):
        if clock.is_due(step * step_s):
            clock.saved(step * step_s)
            saved.append(step)
    return saved


@pytest.mark.parametrize("step_s", [0.05, 5.7, 119.0, 400.0])
def test_whoever_is_killed_loses_two_minutes_and_a_step(step_s: float) -> None:
    saved = [0, *saved_steps(preset("1m"), step_s)]
    gaps = [after - before for before, after in zip(saved, [*saved[1:], STEPS], strict=True)]
    assert max(gaps) * step_s < 120 + step_s


def test_large_models_are_saved_more_rarely() -> None:
    large = preset("1b")
    size_bytes = checkpoint_bytes(large)
    assert size_bytes > 10e9
    (first, *_) = saved_steps(large, 30.0)
    assert size_bytes / (first * 30.0) <= 10e6, "bytes a second"
    assert save_interval_s(size_bytes) <= first * 30.0 < save_interval_s(size_bytes) + 30.0
