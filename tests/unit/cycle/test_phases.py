"""The table of phases: what a round needs next."""

from dataclasses import replace

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.cycle.phases.generate import ahead, generate
from jupiterd.cycle.phases.steps import CloseRound, RunItems, TrainRound
from jupiterd.cycle.phases.table import next_step, skip_reason
from jupiterd.cycle.phases.view import item_id
from jupiterd.ids import ArtifactId
from tests.support.cycle.round_walk import (
    DOMAIN,
    SHAPE,
    artifact,
    collect_all,
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


def test_round_one_goes_through_the_phases_in_order_and_generates_nothing(domain: Domain) -> None:
    expected = [Phase.COLLECT, Phase.FILTER, Phase.PACK, Phase.TRAIN, Phase.EVALUATE, Phase.GATE]
    assert walk(domain, {}) == [*expected, "close"]


def test_a_later_round_generates_once_a_generator_was_promoted(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    phases = walk(domain, completed, round=2, active_generators=in_full(artifact("student")))
    assert phases[:3] == [Phase.COLLECT, Phase.GENERATE, Phase.FILTER]


def test_a_round_that_is_packed_generates_no_more_whoever_was_promoted_since(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    walk(domain, completed, round=2)
    again = walk(domain, completed, round=2, active_generators=in_full(artifact("other")))
    assert again == [Phase.TRAIN, "close"]


def test_without_a_promoted_generator_a_later_round_uses_real_data_alone(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    assert Phase.GENERATE not in walk(domain, completed, round=2)
    assert "real data alone" in skip_reason(2, "", Phase.GENERATE)
    assert skip_reason(2, artifact("student"), Phase.GENERATE) == ""
    assert "has no templates" in skip_reason(2, "", Phase.GENERATE, has_templates=False)


def test_every_source_is_collected_and_only_what_is_open_is_asked_for(domain: Domain) -> None:
    step, reason = next_step(view(), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert [item.id for item in step.items] == ["r1/collect/0", "r1/collect/1"]
    done = {item_id(1, Phase.COLLECT, 1): WorkResult({})}
    step, reason = next_step(view(done), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert [item.id for item in step.items] == ["r1/collect/0"]
    assert reason == "1 of 2 items are open"


def test_a_source_is_shown_what_the_round_before_has_of_it(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    step, _ = next_step(view(completed, round=2), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[1].inputs == {
        f"previous_{name}": artifact(f"r1/collect/1-{name}") for name in ("documents", "state")
    }
    old = {
        name: WorkResult({"train": artifact("t"), "holdout": artifact("h")}) for name in completed
    }
    step, _ = next_step(view(old, round=2), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[1].inputs == {}  # collected before states were kept


def test_the_holdout_reaches_nobody_but_its_maker_the_filter_and_the_evaluation(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    seen_by: set[Phase] = set()
    for number in (1, 2):
        trained = None
        mine: dict[str, WorkResult] = {k: v for k, v in completed.items() if k.startswith("r1/")}
        for _ in range(20):
            now = view(
                mine,
                round=number,
                active_generators=in_full(artifact("student")),
                candidate=trained,
            )
            step, _ = next_step(now, domain, SHAPE)
            if isinstance(step, CloseRound):
                break
            if isinstance(step, TrainRound):
                trained = artifact("model")
                continue
            for item in step.items:
                if any("holdout" in value for value in item.inputs.values()):
                    seen_by.add(item.phase)
            finish(step, mine)
    # Who collects splits: it takes over what it held out in the round before.
    assert seen_by <= {Phase.COLLECT, Phase.FILTER, Phase.EVALUATE}


def test_generated_samples_of_every_round_are_filtered_anew(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    walk(domain, completed, round=2, active_generators=in_full(artifact("student")))
    for name in [name for name in completed if name.startswith("r3/")]:
        del completed[name]
    collected = {
        f"r3/collect/{item}": completed[f"r2/collect/{item}"]
        for item in ("0", "1", "clean/0", "clean/1", "split")
    }
    generated = {
        item_id(3, Phase.GENERATE, number): WorkResult({"samples": artifact(f"third{number}")})
        for number in (0, 1)
    }
    now = view(
        {**completed, **collected, **generated},
        round=3,
        active_generators=in_full(artifact("student")),
    )
    step, _ = next_step(now, domain, SHAPE)
    assert isinstance(step, RunItems)
    cleaned = [item.inputs["samples"] for item in step.items]
    second = completed["r2/generate/0"].outputs["samples"]
    assert cleaned == [second, artifact("third0")]


def test_what_is_written_ahead_is_what_the_next_round_asks_for(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    student = in_full(artifact("student"))
    now = view(completed, round=1, rounds=3, active_generators=student)
    written = {item.id for item in ahead(now, domain)}
    walk(domain, completed, round=2)
    promoted = replace(student, canary=artifact("other"))
    for standing in (student, promoted):
        after = view(completed, round=2, rounds=3, active_generators=standing)
        usual = {item.id: item.inputs["model"] for item in generate(after, domain, SHAPE)}
        assert {usual[name] for name in written} == {artifact("student")}
        assert set(usual) - written == {"r2/generate/1"}


def test_what_is_written_again_is_written_by_other_draws_of_documents_in_another_order(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    walk(domain, completed, round=2)
    now = view(completed, round=2, seed=7, active_generators=in_full(artifact("student")))
    told = [
        [
            (item.id, item.params["order"], item.params["seed"])
            for item in generate(each, domain, SHAPE)
        ]
        for each in (
            now,
            replace(now, generation_redos={1: 3}),
            replace(now, generation_redos={2: 1}),
        )
    ]
    assert told[0] == told[1], "of another round"
    assert {order for _, order, _ in told[0]} == {"7/2"}
    assert [name for name, _, _ in told[0]] == [name for name, _, _ in told[2]]
    assert not {seed for *_, seed in told[0]} & {seed for *_, seed in told[2]}
    assert {order for _, order, _ in told[2]} == {"7/2/1"}


def test_nothing_is_written_ahead_for_no_round_or_in_place_of_a_student_on_trial(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    student = artifact("student")
    assert ahead(view(completed, rounds=1, active_generators=in_full(student)), domain) == ()
    assert (
        ahead(view(completed, rounds=3, active_generators=ActiveGenerators(canary=student)), domain)
        == ()
    )
    assert ahead(view(completed, rounds=3), domain) == ()


def test_sources_are_cleaned_apart_and_then_parted_together(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    step, _ = next_step(view(), domain, SHAPE)
    finish(step, completed)
    cleaning, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(cleaning, RunItems)
    assert [(item.id, item.task) for item in cleaning.items] == [
        ("r1/collect/clean/0", "clean"),
        ("r1/collect/clean/1", "clean"),
    ]
    assert [item.inputs["samples"] for item in cleaning.items] == [
        completed[f"r1/collect/{number}"].outputs["documents"] for number in (0, 1)
    ]
    only_one = completed | {"r1/collect/clean/1": WorkResult({})}
    still, _ = next_step(view(only_one), domain, SHAPE)
    assert isinstance(still, RunItems)
    assert [item.id for item in still.items] == ["r1/collect/clean/0"]
    finish(cleaning, completed)
    completed["r1/collect/clean/0"].counts["dropped.few-letters"] = 3
    parting, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(parting, RunItems)
    (item,) = parting.items
    assert (item.id, item.task) == ("r1/collect/split", "hold_out")
    assert sorted(item.inputs) == ["clean.0", "clean.1", "dropped.0", "dropped.1"]
    assert item.params["left_out"] == {"few-letters": 3}
    assert item.params["needs_verdict"]


def test_a_source_with_much_text_is_cleaned_by_several_items(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    step, _ = next_step(view(), domain, SHAPE)
    finish(step, completed)
    read = completed["r1/collect/1"]
    completed["r1/collect/1"] = WorkResult(read.outputs, {"bytes": float(130 << 20)})
    cleaning, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(cleaning, RunItems)
    told = [
        (item.id, item.params.get("piece"), item.params.get("pieces")) for item in cleaning.items
    ]
    assert told == [
        ("r1/collect/clean/0", None, None),
        ("r1/collect/clean/1-0", 0, 3),
        ("r1/collect/clean/1-1", 1, 3),
        ("r1/collect/clean/1-2", 2, 3),
    ]
    finish(cleaning, completed)
    parting, _ = next_step(view(completed), domain, SHAPE)
    assert {name for name in inputs_of(parting) if name.startswith("clean")} == {
        f"clean.{number}" for number in range(4)
    }


def test_generated_text_is_cleaned_and_then_united_with_real_text_and_the_holdout(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    collect_all(completed)
    uniting, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(uniting, RunItems)
    (item,) = uniting.items
    split = completed["r1/collect/split"].outputs
    assert item.task == "unite"
    assert item.inputs == {"holdout.0": split["holdout"], "clean.0": split["train"]}
    completed["r1/generate/0"] = WorkResult({"samples": artifact("made")})
    cleaning, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(cleaning, RunItems)
    assert [(item.id, item.task) for item in cleaning.items] == [("r1/filter/3", "clean")]
    finish(cleaning, completed)
    uniting, _ = next_step(view(completed), domain, SHAPE)
    cleaned = completed["r1/filter/3"].outputs
    assert inputs_of(uniting) == {
        "holdout.0": split["holdout"], "clean.0": cleaned["clean"],
        "dropped.0": cleaned["dropped"], "clean.1": split["train"],
    }  # fmt: skip


def test_a_later_round_is_told_what_was_held_out_before(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    for _ in range(2):
        step, _ = next_step(view(completed, round=2), domain, SHAPE)
        finish(step, completed)
    parting, _ = next_step(view(completed, round=2), domain, SHAPE)
    inputs = inputs_of(parting)
    assert inputs["plan_before"] == artifact("r1/collect/split-plan")
    assert inputs["holdout_before"] == artifact("r1/collect/split-holdout")


def test_a_cycle_that_parted_its_text_as_it_read_it_goes_on_so(domain: Domain) -> None:
    old = {
        f"r1/collect/{n}": WorkResult(
            {name: artifact(f"{n}-{name}") for name in ("train", "holdout", "state")}
        )
        for n in (0, 1)
    }
    cleaning, _ = next_step(view(old), domain, SHAPE)
    assert isinstance(cleaning, RunItems)
    assert [item.id for item in cleaning.items] == ["r1/filter/1", "r1/filter/2"]
    assert [item.inputs["samples"] for item in cleaning.items] == [
        artifact("0-train"),
        artifact("1-train"),
    ]
    finish(cleaning, old)
    uniting, _ = next_step(view(old), domain, SHAPE)
    assert inputs_of(uniting)["holdout.1"] == artifact("1-holdout")
    later, _ = next_step(view(old, round=2), domain, SHAPE)
    assert isinstance(later, RunItems)
    assert later.items[0].params["holdout"]["fraction"] == 0.1
    assert later.items[0].inputs["previous_train"] == artifact("0-train")


def collected(number: int, name: str) -> WorkResult:
    outputs = ("train", "holdout", "state")
    return WorkResult({each: artifact(f"{name}{number}-{each}") for each in outputs})


def test_a_source_that_could_not_be_had_changes_no_number_of_the_others(domain: Domain) -> None:
    completed = {
        item_id(1, Phase.COLLECT, 0): WorkResult({}, {}, {"lost_source": "python_stdlib"}),
        item_id(1, Phase.COLLECT, 1): collected(1, "first"),
    }
    cleaning, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(cleaning, RunItems)
    (item,) = cleaning.items
    assert (item.id, item.inputs["samples"]) == ("r1/filter/2", artifact("first1-train"))
    finish(cleaning, completed)
    uniting, _ = next_step(view(completed), domain, SHAPE)
    assert set(inputs_of(uniting)) == {"holdout.1", "clean.0", "dropped.0"}
    phases = walk(domain, completed)
    assert phases[-1] == "close"


def test_what_is_held_out_grows_where_a_source_answers_at_last_and_stays_otherwise(
    domain: Domain,
) -> None:
    completed = {
        item_id(1, Phase.COLLECT, 0): WorkResult({}, {}, {"lost_source": "python_stdlib"}),
        item_id(1, Phase.COLLECT, 1): collected(1, "first"),
    }
    walk(domain, completed)
    collecting, _ = next_step(view(completed, round=2), domain, SHAPE)
    assert isinstance(collecting, RunItems)
    assert collecting.items[0].inputs == {}  # it begins anew
    for number in (2, 3):
        for source in (0, 1):
            completed[item_id(number, Phase.COLLECT, source)] = collected(source, f"r{number}")
        uniting = [item for item in _walked_items(domain, completed, number) if item[0] == "unite"]
        held_out = {name: each for name, each in uniting[0][1].items() if "holdout" in name}
        assert held_out == {
            "holdout.0": artifact("r20-holdout"),
            "holdout.1": artifact("first1-holdout"),
        }


def _walked_items(
    domain: Domain, completed: dict[str, WorkResult], number: int
) -> list[tuple[str, dict[str, ArtifactId]]]:
    """Do the round's items of data; return the task and inputs of each."""
    seen: list[tuple[str, dict[str, ArtifactId]]] = []
    while isinstance(step := next_step(view(completed, round=number), domain, SHAPE)[0], RunItems):
        seen += [(item.task, dict(item.inputs)) for item in step.items]
        finish(step, completed)
    return seen


def test_the_tokenizer_of_round_one_is_kept(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    first = completed["r1/pack/0"].outputs["tokenizer"]
    walk(domain, completed, round=2)
    step, _ = next_step(
        view({k: v for k, v in completed.items() if "r2/evaluate" not in k}, round=2),
        domain,
        SHAPE,
    )
    assert isinstance(step, TrainRound)
    assert step.tokenizer == first


def test_whoever_asks_gets_the_same_items(domain: Domain) -> None:
    assert next_step(view(), domain, SHAPE) == next_step(
        view(), parse_domain(DOMAIN, "other.yaml"), SHAPE
    )


def test_a_cycle_with_a_model_to_begin_with_packs_by_its_tokenizer(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed, first_model=artifact("base"))
    again = {name: done for name, done in completed.items() if "/pack/" not in name}
    step, _ = next_step(view(again, first_model=artifact("base")), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[0].inputs["tokenizer"] == artifact("base")
    later, _ = next_step(view(completed, round=2, first_model=artifact("base")), domain, SHAPE)
    for _ in range(4):
        assert isinstance(later, RunItems)
        finish(later, completed)
        later, _ = next_step(view(completed, round=2, first_model=artifact("base")), domain, SHAPE)
    assert isinstance(later, RunItems)
    assert later.items[0].inputs["tokenizer"] == artifact("r1/pack/0-tokenizer")
