"""When the learning rate of an island that joins is raised bit by bit."""

from types import SimpleNamespace
from typing import cast

import pytest

from jupiterd.workers.train.island.learning_rate_ramp import RAMP_STEPS, LearningRateRamp
from jupiterd.workers.training_engine import TrainingEngine
from tests.support.workers.tiny_engine import tiny_engine


def factors(ramp: LearningRateRamp, first_step: int, count: int) -> list[float]:
    return [ramp.factor(step) for step in range(first_step, first_step + count)]


def test_it_rises_over_fifty_steps():
    ramp = LearningRateRamp(is_fresh=True)
    ramp.begin(tiny_engine(), 300, 500)
    assert factors(ramp, 300, 60) == pytest.approx(
        [min(1.0, (n + 1) / RAMP_STEPS) for n in range(60)]
    )
    assert (ramp.at(310), ramp.at(349), ramp.at(350)) == ((300, 50), (), ())


def test_it_is_over_with_the_first_round():
    ramp = LearningRateRamp(is_fresh=True)
    ramp.begin(tiny_engine(), 300, 304)
    assert factors(ramp, 300, 6) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_who_begins_with_the_run_or_has_moments_is_not_slowed():
    beginner, owner = LearningRateRamp(is_fresh=True), LearningRateRamp()
    for ramp, step in ((beginner, 0), (beginner, 30), (owner, 30)):
        ramp.begin(tiny_engine(), step, 60)
        assert factors(ramp, step, 3) == [1.0, 1.0, 1.0]
        assert ramp.at(step) == ()


def test_who_has_forgotten_its_moments_begins_again():
    ramp = LearningRateRamp()
    ramp.forget()
    ramp.begin(tiny_engine(), 40, 60)
    assert factors(ramp, 40, 2) == [1 / 20, 2 / 20]


def test_it_goes_on_where_a_checkpoint_was_made():
    ramp = LearningRateRamp(is_fresh=True)
    ramp.begin(tiny_engine(), 40, 60)
    again = LearningRateRamp(ramp.at(45))
    again.begin(tiny_engine(), 45, 60)
    assert factors(again, 45, 20) == factors(ramp, 45, 20)


def test_who_was_saved_before_it_trained_has_still_nothing_learned():
    again = LearningRateRamp(LearningRateRamp(is_fresh=True).at(40))
    again.begin(tiny_engine(), 40, 60)
    assert factors(again, 40, 2) == [1 / 20, 2 / 20]


def test_no_rank_gathers_all_moments_of_a_model_that_is_cut() -> None:
    def gathered() -> None:
        raise AssertionError("all moments of the model in one place")

    steps: list[int] = []
    engine = SimpleNamespace(
        partition=object(),
        shapes={},
        options=None,
        own_pieces=lambda: iter(()),
        gather=lambda values: [list(values)],
        moments=gathered,
        load_moments=lambda _, step: steps.append(step),
    )
    LearningRateRamp(is_fresh=True).begin(cast("TrainingEngine", engine), 300, 500)
    assert steps == [300]
