"""Training is saved by the clock where its steps are slow: in virtual time."""

import pytest

from jupiterd.cycle.training.plan import ModelShape, parse_model
from jupiterd.cycle.training.save_clock import (
    SaveClock,
    checkpoint_bytes,
    joint_interval_s,
    most_lost_s,
    save_interval_s,
)
from jupiterd.locations import config_folder

STEPS = 250


def preset(size: str) -> ModelShape:
    return parse_model((config_folder() / "models" / f"{size}.yaml").read_text())


def saved_steps(
    shape: ModelShape, step_s: float, asked_s: float = 0.0, *, is_alone: bool = False
) -> list[int]:
    """Return after which steps of a long training it is saved for the sake of time."""
    interval_s = save_interval_s(checkpoint_bytes(shape), asked_s, is_alone=is_alone)
    clock, saved = SaveClock(interval_s, 0.0), list[int]()
    for step in range(1, STEPS + 1):
        if clock.is_due(step * step_s):
            clock.saved(step * step_s)
            saved.append(step)
    return saved


@pytest.mark.parametrize("step_s", [0.05, 5.7, 119.0, 400.0])
def test_a_gang_that_ends_everywhere_loses_two_minutes_and_a_step(step_s: float) -> None:
    assert longest_s(saved_steps(preset("1m"), step_s), step_s) < 120 + step_s


@pytest.mark.parametrize("step_s", [0.05, 5.7, 119.0, 400.0])
@pytest.mark.parametrize("size", ["1m", "25m", "100m"])
def test_one_machine_that_dies_loses_half_a_minute_and_a_step(size: str, step_s: float) -> None:
    saved = saved_steps(preset(size), step_s, is_alone=True)
    assert longest_s(saved, step_s) < 31 + step_s


@pytest.mark.parametrize("asked_s", [5.0, 30.0, 600.0])
@pytest.mark.parametrize("size", ["1m", "1b"])
def test_a_time_that_somebody_asked_for_is_kept_to_whatever_the_size(
    size: str, asked_s: float
) -> None:
    saved = saved_steps(preset(size), 3.0, asked_s, is_alone=True)
    assert saved[0] * 3.0 - 3.0 < asked_s <= saved[0] * 3.0
    assert longest_s(saved, 3.0) < asked_s + 3.0


def longest_s(saved: list[int], step_s: float) -> float:
    """Return the longest time between two checkpoints."""
    begun = [0, *saved]
    gaps = [after - before for before, after in zip(begun, [*saved, STEPS], strict=True)]
    return max(gaps) * step_s


def test_large_models_are_saved_more_rarely() -> None:
    large = preset("1b")
    size_bytes = checkpoint_bytes(large)
    assert size_bytes > 10e9
    (first, *_) = saved_steps(large, 30.0)
    assert size_bytes / (first * 30.0) <= 10e6, "bytes a second"
    assert save_interval_s(size_bytes) <= first * 30.0 < save_interval_s(size_bytes) + 30.0


@pytest.mark.parametrize(("waited_s", "interval_s"), [(0.0, 30.0), (1.0, 30.0), (6.0, 120.0)])
def test_where_training_waits_for_a_checkpoint_it_waits_for_a_twentieth_of_the_time_at_most(
    waited_s: float, interval_s: float
) -> None:
    assert joint_interval_s(waited_s) == pytest.approx(interval_s)
    clock = SaveClock(30.0, 0.0)
    clock.took(waited_s)
    assert not clock.is_due(interval_s - 1)
    assert clock.is_due(interval_s)


@pytest.mark.parametrize("fetched_s", [0.0, 5.0, 30.0, 31.0, 75.0, 200.0])
def test_a_lost_machine_costs_no_more_than_its_last_set_and_what_fetching_took(
    fetched_s: float,
) -> None:
    interval_s = 30.0
    worst_s = oldest_s(interval_s, fetched_s)
    assert worst_s <= most_lost_s(interval_s, fetched_s)
    assert worst_s >= 0.8 * most_lost_s(interval_s, fetched_s), "it says no more than may be"


def oldest_s(interval_s: float, fetched_s: float) -> float:
    """Return how old the last recorded set was at the most, where the newest is fetched next."""
    recorded, free_at_s, worst_s = 0.0, 0.0, 0.0
    for number in range(1, 200):
        written = number * interval_s
        following = written + interval_s
        if free_at_s >= following:  # a newer one is there by then
            continue
        free_at_s = max(free_at_s, written) + fetched_s
        worst_s, recorded = max(worst_s, free_at_s - recorded), written
    return worst_s
