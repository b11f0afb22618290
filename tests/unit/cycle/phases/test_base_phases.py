"""The model that a cycle began with in its evaluations: the incumbent first, and always there."""

from collections.abc import Mapping
from typing import Any

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.phases.steps import RunItems
from jupiterd.cycle.phases.table import next_step
from jupiterd.cycle.runs.recorded_settings import base_of
from tests.support.cycle.round_walk import SHAPE, artifact, finish, tiny_domain, view

BASE, STUDENT, CANDIDATE = artifact("base"), artifact("student"), artifact("candidate")


def items_of(**changes: Any) -> Mapping[Phase, list[WorkItem]]:
    """Return the items that score and judge a candidate."""
    completed: dict[str, WorkResult] = {}
    found: dict[Phase, list[WorkItem]] = {}
    while True:
        step, _ = next_step(view(completed, candidate=CANDIDATE, **changes), tiny_domain(), SHAPE)
        if not isinstance(step, RunItems):
            return found
        known = found.setdefault(step.phase, [])
        known += [item for item in step.items if item.id not in completed]
        finish(step, completed)


@pytest.mark.parametrize(("student", "incumbent"), [("", BASE), (STUDENT, STUDENT)])
def test_the_model_that_was_brought_is_scored_in_every_round(student: str, incumbent: str) -> None:
    found = items_of(base=BASE, best_student=student)
    for item in found[Phase.EVALUATE]:
        assert (item.inputs["base"], item.inputs["incumbent"]) == (BASE, incumbent)
        assert item.params["general_text"] == "general@1"
        assert item.params["has_gaps"] is False, "there is no generator to fill them better than"
    (judging,) = found[Phase.GATE]
    assert (judging.params["base"], judging.params["incumbent"]) == (BASE, incumbent)


def test_cycles_that_began_with_drawn_weights_or_long_ago_are_judged_as_they_were() -> None:
    found = items_of(first_model=BASE)
    for item in found[Phase.EVALUATE]:
        assert not {"base", "incumbent"} & set(item.inputs)
        assert "general_text" not in item.params
    (judging,) = found[Phase.GATE]
    assert "base" not in judging.params
    assert judging.params["incumbent"] == ""


def test_only_cycles_that_tune_have_a_model_to_beat() -> None:
    assert base_of({"start_from": BASE, "recipe": "tuning"}) == BASE
    assert base_of({"start_from": BASE}) == ""
    assert base_of({}) == ""
