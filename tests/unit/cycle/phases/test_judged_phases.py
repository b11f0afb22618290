"""The table of phases: who is scored beside whom, and what is shown the held-out text."""

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.domain.domain import Domain
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.cycle.phases.evaluate import COMPLETIONS, EVALUATION_PIECES
from jupiterd.cycle.phases.steps import CloseRound, RunItems
from jupiterd.cycle.phases.table import next_step
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.ids import ArtifactId
from tests.support.cycle.round_walk import (
    SHAPE,
    artifact,
    finish,
    in_full,
    inputs_of,
    tiny_domain,
    view,
    walk,
)


@pytest.fixture
def domain() -> Domain:
    return tiny_domain()


def judged_view(domain: Domain, **changes: object) -> RoundView:
    """Return a round 2 that is trained and that nobody has scored."""
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    walk(domain, completed, round=2, active_generators=in_full(artifact("generator")))
    for name in [n for n in completed if n.startswith(("r2/evaluate", "r2/gate"))]:
        del completed[name]
    return view(completed, round=2, candidate=artifact("model-2"), **changes)


def test_last_student_and_generator_are_scored_beside_the_candidate(domain: Domain) -> None:
    models = {"student": artifact("student"), "generator": artifact("generator")}
    generators = in_full(models["generator"])
    shown = judged_view(domain, best_student=models["student"], active_generators=generators)
    step, _ = next_step(shown, domain, SHAPE)
    assert isinstance(step, RunItems)
    assert len(step.items) == EVALUATION_PIECES
    for item in step.items:
        assert item.inputs["incumbent"] == models["student"]
        assert item.inputs["generator"] == models["generator"]
    assert [item.params["completions"] for item in step.items] == [COMPLETIONS, 0]
    step, _ = next_step(judged_view(domain), domain, SHAPE)
    assert {"incumbent", "generator"}.isdisjoint(inputs_of(step))


def test_answers_that_an_earlier_round_has_are_shown_to_the_piece_that_asks(domain: Domain) -> None:
    step, _ = next_step(judged_view(domain), domain, SHAPE)
    assert isinstance(step, RunItems)
    wanted = {"cycle": "c" * 16, "models": {"candidate": artifact("model-2")}}
    assert [item.params.get("answers") for item in step.items] == [wanted, None]
    assert not any("previous_answers" in item.inputs for item in step.items)  # an older build's
    student = artifact("student")
    shown = judged_view(domain, best_student=student, base=artifact("base"))
    for number, model in ((1, "model-1"), (1, "a-model"), (2, "model-2")):
        name = item_id(number, Phase.EVALUATE, 0, artifact(model))
        made = {"scores": artifact("s"), "answers": artifact(f"answers-{model}")}
        shown.completed[name] = WorkResult(made)  # type: ignore[index]
    del shown.completed[name]  # type: ignore[attr-defined]
    step, _ = next_step(shown, domain, SHAPE)
    assert isinstance(step, RunItems)
    models = {"candidate": artifact("model-2"), "incumbent": student, "base": artifact("base")}
    assert step.items[0].params["answers"]["models"] == models
    before = [item.inputs.get("previous_answers") for item in step.items]
    assert before == [artifact("answers-model-1"), None]


@pytest.mark.parametrize(
    ("named", "scored"),
    [
        (Generator("base", artifact=artifact("base")), artifact("base")),
        (Generator("server", url="http://box:1/v1", model="m"), artifact("student")),
    ],
    ids=["a model", "a server that nobody can score"],
)
def test_the_candidate_is_compared_with_a_generator_that_people_named(
    domain: Domain, named: Generator, scored: ArtifactId
) -> None:
    canary = ActiveGenerators(canary=artifact("student"))
    shown = judged_view(domain, active_generators=canary, named_generator=named)
    step, _ = next_step(shown, domain, SHAPE)
    assert inputs_of(step)["generator"] == scored


def won(round_number: int, verdict: str = "PROMOTE") -> dict[str, WorkResult]:
    """Return the verdict on a candidate of that round."""
    name = item_id(round_number, Phase.GATE, 0, artifact(f"model-{round_number}"))
    return {name: WorkResult({"verdict": artifact(name)}, {}, {"verdict": verdict})}


def scored(domain: Domain, number: int, **rounds: str) -> dict[str, WorkResult]:
    """Return what is done of a round that the gate has judged as it did the rounds before."""
    completed: dict[str, WorkResult] = {}
    for each in range(1, number + 1):
        walk(domain, completed, round=each)
        completed |= won(each, rounds.get(f"r{each}", "PROMOTE"))
    return completed


def test_every_fifth_winner_is_also_shown_the_vault(domain: Domain) -> None:
    completed = scored(domain, 5)
    now = view(completed, round=5, candidate=artifact("model-5"))
    looking, _ = next_step(now, domain, SHAPE)
    assert isinstance(looking, RunItems)
    (item,) = looking.items
    assert (item.phase, item.params["parts"]) == (Phase.EVALUATE, ["vault"])
    assert item.params["completions"] == 0
    finish(looking, completed)
    judging, _ = next_step(now, domain, SHAPE)
    assert isinstance(judging, RunItems)
    (item,) = judging.items
    assert item.id == item_id(5, Phase.GATE, 1, artifact("model-5"))
    assert sorted(item.inputs) == ["scores.0", "scores.1", "vault.0"]
    finish(judging, completed)
    step, _ = next_step(now, domain, SHAPE)
    assert step == CloseRound(completed[item.id])


@pytest.mark.parametrize(
    ("number", "rounds"), [(4, {}), (6, {}), (5, {"r2": "HOLD"}), (5, {"r5": "HOLD"})]
)
def test_others_are_not(domain: Domain, number: int, rounds: dict[str, str]) -> None:
    now = view(
        scored(domain, number, **rounds), round=number, candidate=artifact(f"model-{number}")
    )
    assert isinstance(next_step(now, domain, SHAPE)[0], CloseRound)


def test_a_domain_without_a_vault_shows_none(domain: Domain) -> None:
    holdout = domain.holdout.model_copy(update={"vault": 0.0})
    without = domain.model_copy(update={"holdout": holdout})
    now = view(scored(without, 5), round=5, candidate=artifact("model-5"))
    assert isinstance(next_step(now, without, SHAPE)[0], CloseRound)


def test_each_look_at_the_holdout_is_counted(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    del completed[item_id(1, Phase.GATE, 0, artifact("model-1"))]
    step, _ = next_step(view(completed, candidate=artifact("model-1"), looks=4), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[0].params["look"] == 5


def test_scores_of_one_model_are_never_taken_for_those_of_another(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    step, _ = next_step(view(completed, candidate=artifact("another")), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.phase is Phase.EVALUATE
    assert len(step.items) == EVALUATION_PIECES


def test_the_gate_is_told_which_held_out_text_it_judges_on(domain: Domain) -> None:
    def version(of: Domain, collected: str = "a") -> str:
        completed: dict[str, WorkResult] = {}
        walk(of, completed)
        completed["r1/collect/0"] = WorkResult(
            {"train": artifact("t"), "holdout": artifact(collected)}
        )
        del completed[item_id(1, Phase.GATE, 0, artifact("model-1"))]
        step, _ = next_step(view(completed, candidate=artifact("model-1")), of, SHAPE)
        assert isinstance(step, RunItems)
        (item,) = step.items
        assert item.params["parts"] == ["gate"]
        return str(item.params["holdout_version"])

    other = domain.model_copy(update={"holdout": domain.holdout.model_copy(update={"vault": 0.1})})
    assert version(domain) == version(domain)
    assert len({version(domain), version(other), version(domain, "b")}) == 3
