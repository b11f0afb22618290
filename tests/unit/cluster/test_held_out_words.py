"""What is told of the loss on held-out text."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cluster.held_out_words import early_end, held_out_readings, held_out_told
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.ids import ArtifactId
from tests.unit.cluster.building import CYCLE

HORIZON = Horizon(step=147, loss=3.5, best_step=63, best_loss=3.25, decay_from=126, ended=147)
LAST = CheckpointCommitted(
    CYCLE, 1, "", ArtifactId("a" * 64), 1, 147, 9, 9, 2.5, is_final=True, horizon=HORIZON.to_plain()
)


def test_an_early_end_is_told_with_the_step_whose_weights_count() -> None:
    assert early_end(LAST) == (
        "round 1 ended early after step 147: the loss on held-out text has risen since step 63, "
        "whose weights count"
    )
    assert held_out_told(LAST) == ["held out 3.250, best at step 63", "ended early"]


@pytest.mark.parametrize(
    "made",
    [replace(LAST, is_final=False), *(replace(LAST, horizon=h) for h in ({}, {"step": 3.0}))],
)
def test_any_other_end_isnt(made: CheckpointCommitted) -> None:
    assert early_end(made) == ""


def test_without_held_out_text_nothing_is_told() -> None:
    assert held_out_told(replace(LAST, horizon={})) == []
    assert held_out_readings({}) == {}


def test_the_readings_are_the_last_loss_and_the_best() -> None:
    assert held_out_readings(LAST.horizon) == {
        "held_out": 3.5, "best_step": 63.0, "best_held_out": 3.25,
    }  # fmt: skip
