"""The table of phases: how batches are united, and what a purge does to that."""

from collections.abc import Mapping
from typing import Any

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.phases.evaluate import grades_before
from jupiterd.cycle.phases.steps import RunItems, TrainRound
from jupiterd.cycle.phases.table import next_step
from tests.support.cycle.round_walk import (
    DOMAIN,
    SHAPE,
    artifact,
    finish,
    in_full,
    tiny_domain,
    view,
    walk,
)


@pytest.fixture
def domain() -> Domain:
    return tiny_domain()


def test_what_was_purged_is_told_to_whoever_reads_samples(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    told: set[Phase] = set()
    again: dict[str, WorkResult] = dict(completed)
    for _ in range(8):
        now = view(
            again, round=2, active_generators=in_full(artifact("student")),
            purged=frozenset({"docs", "a"}), candidate=artifact("next"),
        )  # fmt: skip
        step, _ = next_step(now, domain, SHAPE)
        assert isinstance(step, RunItems)
        told |= {step.phase for item in step.items if item.params.get("purged") == ["a", "docs"]}
        finish(step, again)
    assert told == {Phase.COLLECT, Phase.GENERATE, Phase.FILTER, Phase.PACK, Phase.EVALUATE}


def left_out(*sources: str) -> dict[str, float]:
    return {f"left_out:{source}": 0.0 for source in sources}


def united_before_a_purge(domain: Domain) -> dict[str, WorkResult]:
    """Return what is done once the batches of round 1 are united, nothing being purged yet."""
    completed: dict[str, WorkResult] = {}
    for _ in range(4):
        step, _ = next_step(view(completed), domain, SHAPE)
        finish(step, completed)
    assert "r1/filter/0" in completed
    return completed


def test_a_purge_before_packing_has_the_batches_united_anew(domain: Domain) -> None:
    """The text that was kept may be the purged one, and a copy dropped as its duplicate."""
    completed = united_before_a_purge(domain)
    now = view(completed, purged=frozenset({"docs", "a"}))
    again, _ = next_step(now, domain, SHAPE)
    assert isinstance(again, RunItems)
    (item,) = again.items
    assert (item.task, item.params["purged"]) == ("unite", ["a", "docs"])
    assert item.id not in completed
    completed[item.id] = WorkResult({"kept": artifact("anew")}, left_out("docs", "a"))
    packing, _ = next_step(now, domain, SHAPE)
    assert isinstance(packing, RunItems)
    assert (packing.phase, packing.items[0].inputs["kept"]) == (Phase.PACK, artifact("anew"))


def test_a_purge_after_packing_waits_for_the_next_round(domain: Domain) -> None:
    completed = united_before_a_purge(domain)
    step, _ = next_step(view(completed), domain, SHAPE)
    finish(step, completed)
    now = view(completed, purged=frozenset({"docs"}))
    assert isinstance(next_step(now, domain, SHAPE)[0], TrainRound)
    judged = view(completed, purged=frozenset({"docs"}), candidate=artifact("model"))
    evaluation, _ = next_step(judged, domain, SHAPE)
    assert isinstance(evaluation, RunItems)
    assert evaluation.items[0].inputs["kept"] == completed["r1/filter/0"].outputs["kept"]


def test_what_is_united_is_judged_by_quality_where_the_domain_says_so(domain: Domain) -> None:
    completed = united_before_a_purge(domain)
    del completed["r1/filter/0"]
    step, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert "quality" not in step.items[0].params
    text = DOMAIN + "filters: {quality: {like: [data], keep_share: 0.5}}"
    step, _ = next_step(view(completed), parse_domain(text, "tiny.yaml"), SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[0].params["quality"] == {"like": ["data"], "keep_share": 0.5}


def items_of_a_round(domain: Domain, questions: str) -> dict[str, WorkItem]:
    """Return the items of a round up to its evaluation."""
    completed: dict[str, WorkResult] = {}
    found: dict[str, WorkItem] = {}
    while True:
        now = view(completed, candidate=artifact("candidate"), questions=questions)
        step, _ = next_step(now, domain, SHAPE)
        if not isinstance(step, RunItems):
            return found
        found |= {item.id: item for item in step.items}
        finish(step, completed)


def test_a_domains_own_questions_go_to_uniting_and_their_files_name_to_no_item(
    domain: Domain,
) -> None:
    asks = parse_domain(f"{DOMAIN}evaluation: {{questions: own.jsonl}}\n", "tiny.yaml")
    plain = items_of_a_round(domain, "")
    found = items_of_a_round(asks, artifact("questions"))
    uniting = found["r1/filter/0"]
    assert uniting.inputs["questions"] == artifact("questions")
    scoring = next(item for item in found.values() if "own_questions" in item.params)
    assert (scoring.phase, scoring.inputs["questions"]) == (
        Phase.EVALUATE,
        uniting.inputs["questions"],
    )
    assert scoring.params["own_questions"]["models"] == scoring.params["answers"]["models"]
    assert {name: _without(item.params, "own_questions") for name, item in found.items()} == {
        name: item.params for name, item in plain.items()
    }
    assert all("questions" not in item.inputs for item in plain.values())


def _without(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in params.items() if each != name}


def test_models_that_were_asked_in_an_earlier_round_arent_asked_again(domain: Domain) -> None:
    before = WorkResult({}, {"own_questions": 4.0, f"own_right:{artifact('student')}": 3.0})
    now = view(
        {"r1/evaluate/0/cccccccc": before}, round=2, candidate=artifact("next"),
        questions=artifact("questions"), best_student=artifact("student"),
    )  # fmt: skip
    assert grades_before(now) == {artifact("student"): [3, 4]}
