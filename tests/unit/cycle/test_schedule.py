"""The learning rate's curve."""

import pytest

from jupiterd.cycle.schedule import Schedule


def test_it_rises_in_a_line_stays_and_falls_in_a_line():
    curve = Schedule(peak=1.0, steps=10, warmup_steps=4, decay_steps=2)
    rates = [curve.learning_rate(step) for step in range(10)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5]


def test_every_step_that_trains_has_a_rate_above_nothing():
    curve = Schedule(peak=3e-3, steps=50, warmup_steps=5, decay_steps=50)
    assert all(0 < curve.learning_rate(step) <= 3e-3 for step in range(50))


def test_after_the_last_step_there_is_nothing():
    assert Schedule(1.0, 10, 1, 0).learning_rate(10) == 0.0


@pytest.mark.parametrize(("warmup_steps", "decay_steps"), [(0, 0), (1, 0)])
def test_without_warm_up_and_decay_it_is_level(warmup_steps: int, decay_steps: int):
    curve = Schedule(2.0, 5, warmup_steps, decay_steps)
    assert {curve.learning_rate(step) for step in range(5)} == {2.0}


def test_a_round_of_one_step_trains():
    assert Schedule(1.0, 1, 1, 1).learning_rate(0) == 1.0
