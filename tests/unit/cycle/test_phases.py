"""The table of phases: what a round needs next."""

from dataclasses import replace

import pytest

from jupiterd.cycle.domain import Domain, parse_domain
from jupiterd.cycle.generator import Generator
from jupiterd.cycle.phases.evaluate import COMPLETIONS, EVALUATION_PIECES
from jupiterd.cycle.phases.generate import ahead, generate
from jupiterd.cycle.phases.steps import CloseRound, RunItems, Step, TrainRound
from jupiterd.cycle.phases.table import next_step, skip_reason
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.plan import parse_model
from jupiterd.cycle.promotion import Standing
from jupiterd.cycle.work import Phase, WorkResult
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.locations import config_folder

DOMAIN = """
version: 1
domain: tiny
title: A tiny domain
language: code:python
data_sources:
  - {kind: python_stdlib}
  - {kind: folder, path: /data, license: MIT}
generation:
  templates: [{kind: complete_function, samples: 10}]
holdout: {salt: s}
gate: {proxies: off}  # see test_proxy_items
"""

SHAPE = parse_model((config_folder() / "models" / "1m.yaml").read_text())


@pytest.fixture
def domain() -> Domain:
    return parse_domain(DOMAIN, "tiny.yaml")


def view(completed: dict[str, WorkResult] | None = None, **changes: object) -> RoundView:
    fields = {
        "cycle": CycleId("c" * 16),
        "round": 1,
        "seed": 7,
        "started_at": "2026-01-01T00:00:00+00:00",
        "completed": completed or {},
        "trained": None,
        "looks": 0,
    }
    return RoundView(**{**fields, **changes})


def artifact(name: str) -> ArtifactId:
    return ArtifactId(name.ljust(64, "0"))


def in_full(student: str) -> Standing:
    return Standing({"complete_function": (student,)})


def finish(step: Step, completed: dict[str, WorkResult]) -> None:
    """Pretend that every open item was done."""
    assert isinstance(step, RunItems)
    outputs = {
        "collect": ("train", "holdout", "state", "skipped"),
        "generate": ("samples", "parents"),
        "clean": ("clean", "dropped"),
        "unite": ("kept", "dropped"),
        "pack": ("shards", "tokenizer"),
        "evaluate": ("scores",),
        "gate": ("verdict",),
    }
    for item in step.items:
        made = {name: artifact(f"{item.id}-{name}") for name in outputs[item.task]}
        completed[item.id] = WorkResult(made)


def walk(domain: Domain, completed: dict[str, WorkResult], **changes: object) -> list[Phase | str]:
    """Do what is asked for until the round is closed, and return the phases in their order."""
    seen: list[Phase | str] = []
    trained = None
    for _ in range(20):
        step, _ = next_step(view(completed, trained=trained, **changes), domain, SHAPE)
        if isinstance(step, CloseRound):
            return [*seen, "close"]
        if isinstance(step, TrainRound):
            seen.append(Phase.TRAIN)
            trained = artifact(f"model-{changes.get('round', 1)}")
        else:
            seen += [step.phase] if step.phase not in seen else []
            finish(step, completed)
    raise AssertionError("the round never ends")


def test_round_one_goes_through_the_phases_in_order_and_generates_nothing(domain: Domain) -> None:
    expected = [Phase.COLLECT, Phase.FILTER, Phase.PACK, Phase.TRAIN, Phase.EVALUATE, Phase.GATE]
    assert walk(domain, {}) == [*expected, "close"]


def test_a_later_round_generates_once_a_generator_was_promoted(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    phases = walk(domain, completed, round=2, standing=in_full(artifact("student")))
    assert phases[:3] == [Phase.COLLECT, Phase.GENERATE, Phase.FILTER]


def test_a_round_that_is_packed_generates_no_more_whoever_was_promoted_since(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    walk(domain, completed, round=2)
    again = walk(domain, completed, round=2, standing=in_full(artifact("other")))
    assert again == [Phase.TRAIN, "close"]


def test_without_a_promoted_generator_a_later_round_uses_real_data_alone(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    assert Phase.GENERATE not in walk(domain, completed, round=2)
    assert "real data alone" in skip_reason(2, "", Phase.GENERATE)
    assert skip_reason(2, artifact("student"), Phase.GENERATE) == ""


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
        f"previous_{name}": artifact(f"r1/collect/1-{name}")
        for name in ("train", "holdout", "state")
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
            now = view(mine, round=number, standing=in_full(artifact("student")), trained=trained)
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
    walk(domain, completed, round=2, standing=in_full(artifact("student")))
    for name in [name for name in completed if name.startswith("r3/")]:
        del completed[name]
    collected = {item_id(3, Phase.COLLECT, n): completed[f"r2/collect/{n}"] for n in (0, 1)}
    generated = {
        item_id(3, Phase.GENERATE, number): WorkResult({"samples": artifact(f"third{number}")})
        for number in (0, 1)
    }
    now = view(
        {**completed, **collected, **generated}, round=3, standing=in_full(artifact("student"))
    )
    step, _ = next_step(now, domain, SHAPE)
    assert isinstance(step, RunItems)
    cleaned = [item.inputs["samples"] for item in step.items]
    second = completed["r2/generate/0"].outputs["samples"]
    assert cleaned[2:] == [second, artifact("third0")]


def test_what_is_written_ahead_is_what_the_next_round_asks_for(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    student = in_full(artifact("student"))
    now = view(completed, round=1, rounds=3, standing=student)
    written = {item.id for item in ahead(now, domain)}
    walk(domain, completed, round=2)
    promoted = replace(student, canary=artifact("other"))
    for standing in (student, promoted):
        after = view(completed, round=2, rounds=3, standing=standing)
        usual = {item.id: item.inputs["model"] for item in generate(after, domain, SHAPE)}
        assert {usual[name] for name in written} == {artifact("student")}
        assert set(usual) - written == {"r2/generate/1"}


def test_nothing_is_written_ahead_for_no_round_or_in_place_of_a_student_on_trial(
    domain: Domain,
) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    student = artifact("student")
    assert ahead(view(completed, rounds=1, standing=in_full(student)), domain) == ()
    assert ahead(view(completed, rounds=3, standing=Standing(canary=student)), domain) == ()
    assert ahead(view(completed, rounds=3), domain) == ()


def test_batches_are_cleaned_apart_and_then_united_with_the_holdout(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    step, _ = next_step(view(), domain, SHAPE)
    finish(step, completed)
    cleaning, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(cleaning, RunItems)
    assert [(item.id, item.task) for item in cleaning.items] == [
        ("r1/filter/1", "clean"),
        ("r1/filter/2", "clean"),
    ]
    assert [item.inputs["samples"] for item in cleaning.items] == [
        completed[f"r1/collect/{number}"].outputs["train"] for number in (0, 1)
    ]
    only_one = completed | {"r1/filter/2": WorkResult({})}
    still, _ = next_step(view(only_one), domain, SHAPE)
    assert isinstance(still, RunItems)
    assert [item.id for item in still.items] == ["r1/filter/1"]
    finish(cleaning, completed)
    uniting, _ = next_step(view(completed), domain, SHAPE)
    assert isinstance(uniting, RunItems)
    (item,) = uniting.items
    assert (item.id, item.task) == ("r1/filter/0", "unite")
    assert sorted(item.inputs) == [
        f"{name}.{number}" for name in ("clean", "dropped", "holdout") for number in (0, 1)
    ]


def collected(number: int, name: str) -> WorkResult:
    outputs = ("train", "holdout", "state")
    return WorkResult({each: artifact(f"{name}{number}-{each}") for each in outputs})


def inputs_of(step: Step) -> dict[str, ArtifactId]:
    assert isinstance(step, RunItems)
    return {name: each for item in step.items for name, each in item.inputs.items()}


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


def judged_view(domain: Domain, **changes: object) -> RoundView:
    """Return a round 2 that is trained and that nobody has scored."""
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    walk(domain, completed, round=2, standing=in_full(artifact("generator")))
    for name in [n for n in completed if n.startswith(("r2/evaluate", "r2/gate"))]:
        del completed[name]
    return view(completed, round=2, trained=artifact("model-2"), **changes)


def test_last_student_and_generator_are_scored_beside_the_candidate(domain: Domain) -> None:
    models = {"student": artifact("student"), "generator": artifact("generator")}
    changes = {"student": models["student"], "standing": in_full(models["generator"])}
    step, _ = next_step(judged_view(domain, **changes), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert len(step.items) == EVALUATION_PIECES
    for item in step.items:
        assert item.inputs["incumbent"] == models["student"]
        assert item.inputs["generator"] == models["generator"]
    assert [item.params["completions"] for item in step.items] == [COMPLETIONS, 0]
    step, _ = next_step(judged_view(domain), domain, SHAPE)
    assert {"incumbent", "generator"}.isdisjoint(inputs_of(step))


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
    canary = Standing(canary=artifact("student"))
    shown = judged_view(domain, standing=canary, of_others=named)
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
    now = view(completed, round=5, trained=artifact("model-5"))
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
    now = view(scored(domain, number, **rounds), round=number, trained=artifact(f"model-{number}"))
    assert isinstance(next_step(now, domain, SHAPE)[0], CloseRound)


def test_a_domain_without_a_vault_shows_none(domain: Domain) -> None:
    holdout = domain.holdout.model_copy(update={"vault": 0.0})
    without = domain.model_copy(update={"holdout": holdout})
    now = view(scored(without, 5), round=5, trained=artifact("model-5"))
    assert isinstance(next_step(now, without, SHAPE)[0], CloseRound)


def test_each_look_at_the_holdout_is_counted(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    del completed[item_id(1, Phase.GATE, 0, artifact("model-1"))]
    step, _ = next_step(view(completed, trained=artifact("model-1"), looks=4), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[0].params["look"] == 5


def test_whoever_asks_gets_the_same_items(domain: Domain) -> None:
    assert next_step(view(), domain, SHAPE) == next_step(
        view(), parse_domain(DOMAIN, "other.yaml"), SHAPE
    )


def test_scores_of_one_model_are_never_taken_for_those_of_another(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    step, _ = next_step(view(completed, trained=artifact("another")), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.phase is Phase.EVALUATE
    assert len(step.items) == EVALUATION_PIECES


def test_what_was_purged_is_told_to_whoever_reads_samples(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed)
    told: set[Phase] = set()
    again: dict[str, WorkResult] = dict(completed)
    for _ in range(6):
        now = view(
            again, round=2, standing=in_full(artifact("student")), purged=frozenset({"docs", "a"}),
            trained=artifact("next"),
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
    for _ in range(3):
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


def test_a_cycle_with_a_model_to_begin_with_packs_by_its_tokenizer(domain: Domain) -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain, completed, first_model=artifact("base"))
    again = {name: done for name, done in completed.items() if "/pack/" not in name}
    step, _ = next_step(view(again, first_model=artifact("base")), domain, SHAPE)
    assert isinstance(step, RunItems)
    assert step.items[0].inputs["tokenizer"] == artifact("base")
    later, _ = next_step(view(completed, round=2, first_model=artifact("base")), domain, SHAPE)
    for _ in range(3):
        assert isinstance(later, RunItems)
        finish(later, completed)
        later, _ = next_step(view(completed, round=2, first_model=artifact("base")), domain, SHAPE)
    assert isinstance(later, RunItems)
    assert later.items[0].inputs["tokenizer"] == artifact("r1/pack/0-tokenizer")


def test_a_purge_after_packing_waits_for_the_next_round(domain: Domain) -> None:
    completed = united_before_a_purge(domain)
    step, _ = next_step(view(completed), domain, SHAPE)
    finish(step, completed)
    now = view(completed, purged=frozenset({"docs"}))
    assert isinstance(next_step(now, domain, SHAPE)[0], TrainRound)
    judged = view(completed, purged=frozenset({"docs"}), trained=artifact("model"))
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


def test_the_gate_is_told_which_held_out_text_it_judges_on(domain: Domain) -> None:
    def version(of: Domain, collected: str = "a") -> str:
        completed: dict[str, WorkResult] = {}
        walk(of, completed)
        completed["r1/collect/0"] = WorkResult(
            {"train": artifact("t"), "holdout": artifact(collected)}
        )
        del completed[item_id(1, Phase.GATE, 0, artifact("model-1"))]
        step, _ = next_step(view(completed, trained=artifact("model-1")), of, SHAPE)
        assert isinstance(step, RunItems)
        (item,) = step.items
        assert item.params["parts"] == ["gate"]
        return str(item.params["holdout_version"])

    other = domain.model_copy(update={"holdout": domain.holdout.model_copy(update={"vault": 0.1})})
    assert version(domain) == version(domain)
    assert len({version(domain), version(other), version(domain, "b")}) == 3
