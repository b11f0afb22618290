"""What a run needs next."""

from dataclasses import replace

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.phases.steps import RunItems, TrainRound
from jupiterd.cycle.runs.run_phases import (
    CloseRun,
    FreezeManifest,
    RunView,
    evaluation_id,
    next_run_step,
)
from jupiterd.errors import Bug
from jupiterd.ids import ArtifactId

DATA = WorkResult(
    {"tokenizer": ArtifactId("t"), "shards": ArtifactId("s"), "holdout": ArtifactId("h")}
)
MODEL = ArtifactId("m" * 64)
FRESH = RunView(
    source={"kind": "folder", "path": "/letters"},
    tokenizer="",
    is_training=True,
    data=None,
    has_manifest=False,
    final_checkpoint=None,
    completed={},
)


def test_a_model_that_could_not_be_validated_closes_the_run_all_the_same() -> None:
    trained = replace(FRESH, data=DATA, has_manifest=True, final_checkpoint=MODEL)
    assert next_run_step(replace(trained, unscored=MODEL))[0] == CloseRun(MODEL)
    other = replace(trained, unscored=ArtifactId("o" * 64))
    assert isinstance(next_run_step(other)[0], RunItems)


def item_of(view: RunView) -> object:
    step, _ = next_run_step(view)
    assert isinstance(step, RunItems)
    return step.items[0]


def test_first_the_data_set_is_made() -> None:
    item = item_of(FRESH)
    assert (item.phase, item.task, item.params["path"]) == (Phase.PACK, "prepare", "/letters")
    assert item.inputs == {}


def test_a_tokenizer_that_was_given_is_used() -> None:
    assert item_of(replace(FRESH, tokenizer="t")).inputs == {"tokenizer": "t"}


def test_then_it_is_frozen_trained_on_and_scored_and_the_run_is_closed() -> None:
    ready = replace(FRESH, data=DATA)
    assert next_run_step(ready)[0] == FreezeManifest(DATA)
    frozen = replace(ready, has_manifest=True)
    assert next_run_step(frozen)[0] == TrainRound(
        ArtifactId("t"), ArtifactId("s"), (ArtifactId("h"),)
    )
    trained = replace(frozen, final_checkpoint=MODEL)
    scoring = item_of(trained)
    assert (scoring.task, scoring.inputs) == ("evaluate_held_out", {"model": MODEL, "holdout": "h"})
    scored = replace(trained, completed={evaluation_id(MODEL): WorkResult({})})
    assert next_run_step(scored)[0] == CloseRun(MODEL)


def test_without_held_out_text_nothing_is_scored() -> None:
    data = WorkResult({"tokenizer": ArtifactId("t"), "shards": ArtifactId("s")})
    view = replace(FRESH, data=data, has_manifest=True, final_checkpoint=MODEL)
    assert next_run_step(view)[0] == CloseRun(MODEL)


def test_a_run_of_data_alone_has_nothing_to_do_once_it_is_there() -> None:
    with pytest.raises(Bug):
        next_run_step(replace(FRESH, is_training=False, data=DATA))
