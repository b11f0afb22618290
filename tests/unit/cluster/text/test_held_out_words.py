"""What is told of the loss on held-out text."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.text.held_out_words import (
    began_with,
    early_end,
    held_out_readings,
    held_out_summary,
    worse_end,
)
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE

HORIZON = Horizon(step=147, loss=3.5, best_step=63, best_loss=3.25, decay_from=126, ended=147)
LAST = CheckpointCommitted(
    CYCLE, 1, "", ArtifactId("a" * 64), 1, 147, 9, 9, 2.5, is_final=True, horizon=HORIZON.to_plain()
)


def test_an_early_end_is_told_with_the_step_whose_weights_count() -> None:
    assert early_end(LAST) == (
        "round 1 ended early after step 147: the loss on held-out text has risen since step 63, "
        "whose weights count"
    )
    assert held_out_summary(LAST) == ["held out 3.250, best at step 63", "ended early"]


@pytest.mark.parametrize(
    "made",
    [replace(LAST, is_final=False), *(replace(LAST, horizon=h) for h in ({}, {"step": 3.0}))],
)
def test_any_other_end_isnt(made: CheckpointCommitted) -> None:
    assert early_end(made) == ""


def test_without_held_out_text_nothing_is_told() -> None:
    assert held_out_summary(replace(LAST, horizon={})) == []
    assert held_out_readings({}) == {}


def test_the_readings_are_the_last_loss_and_the_best() -> None:
    assert held_out_readings(LAST.horizon) == {
        "held_out": 3.5, "best_step": 63.0, "best_held_out": 3.25,
    }  # fmt: skip


GIVEN = Horizon(
    step=40, loss=3.0, best_step=0, best_loss=2.0, first_loss=2.0, bytes_per_token=4.0
).to_plain()
WORSE = replace(LAST, horizon=GIVEN, step=40)


def test_weights_that_were_given_and_got_worse_are_told_of_in_bits_per_byte() -> None:
    assert began_with(WORSE) == "held out: 0.7213 bits per byte before training"
    assert worse_end(WORSE) == (
        "round 1 ended worse than it began (1.0820 bits per byte of held-out text, 0.7213 before): "
        "the weights as they came count"
    )
    assert held_out_summary(WORSE) == [
        "held out 2.000, best as the weights were given",
        "0.7213 bits per byte, 0.7213 before training",
        "ended worse than it began, at 1.0820",
    ]
    assert held_out_readings(WORSE.horizon)["best_step"] == 0.0
    assert worse_end(replace(WORSE, is_final=False)) == ""


def test_weights_that_were_given_and_got_better_are_told_of_with_both_scores() -> None:
    better = replace(WORSE, horizon={**GIVEN, "loss": 1.6, "best_loss": 1.5, "best_step": 30.0})
    assert worse_end(better) == ""
    assert held_out_summary(better) == [
        "held out 1.500, best at step 30", "0.5410 bits per byte, 0.7213 before training",
    ]  # fmt: skip


def test_weights_that_only_rounding_sets_apart_from_those_that_were_given_are_not_worse() -> None:
    assert worse_end(replace(WORSE, horizon={**GIVEN, "loss": 2.0 + 1e-6})) == ""
    assert worse_end(replace(WORSE, horizon={**GIVEN, "loss": 2.001})) != ""


def test_of_drawn_weights_nothing_is_said_of_before() -> None:
    assert (began_with(LAST), worse_end(LAST)) == ("", "")
