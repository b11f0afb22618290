"""Which models there are, built from facts through the real state."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    CycleStarted,
    CycleStateSet,
    Fact,
    RoundCommitted,
    TrainingStarted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.runs.run_phases import evaluation_id
from jupiterd.daemon.catalog.model_catalog import (
    KnownModel,
    model_meant,
    models_of,
    promoted_model,
)
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.locations import config_folder
from tests.support.cluster.building import CYCLE, NODES, started

FIRST, SECOND, LAST = ArtifactId("1a" * 32), ArtifactId("2b" * 32), ArtifactId("3c" * 32)
RUN = CycleId("e" * 16)
OTHERS = ArtifactId("4d" * 32)


def made(model: str, parent: str = "", number: int = 1, run: CycleId = CYCLE) -> Fact:
    artifact = ArtifactId(model)
    return CheckpointCommitted(run, number, parent, artifact, 1, 50, 900 * number, 4, 2.5, True)


def said(model: str, verdict: str, number: int = 1) -> tuple[Fact, Fact]:
    candidate = ArtifactId(model)
    promoted = FIRST if number > 1 or verdict == "PROMOTE" else ""
    return (
        VerdictReached(CYCLE, number, verdict, "why", 2.1, ArtifactId("9" * 64), candidate, ""),
        RoundCommitted(CYCLE, number, model, verdict, promoted),
    )


BEGUN = replace(
    started(rounds=3), domain_yaml=(config_folder() / "domains" / "python.yaml").read_text()
)
TWO_ROUNDS = (
    BEGUN,
    made(FIRST),
    *said(FIRST, "PROMOTE"),
    made(SECOND, FIRST, 2),
    *said(SECOND, "HOLD", 2),
)


def trained_run(name: str = "letters", day: int = 2) -> TrainingStarted:
    asked_at = f"2026-01-0{day}T00:00:00Z"
    return TrainingStarted(RUN, name, RUN, "1m", "size: 1m\n", "auto", (), {}, asked_at)


def silent(part: str = "templates: []") -> CycleStarted:
    """Return a cycle of a domain that is to be trained on no generated text."""
    share = part if part.startswith("synthetic_share") else "synthetic_share: 0.3"
    templates = part if part.startswith("templates") else "templates: [{kind: complete_function}]"
    text = f"""version: 1
title: A domain for a tuned model
language: code:python
data_sources: [{{kind: folder, path: /data, license: MIT}}]
generation: {{{templates}}}
mix_ratio: {{{share}}}
holdout: {{salt: s}}
"""
    return replace(BEGUN, domain_yaml=text)


def known(*facts: Fact) -> list[KnownModel]:
    state = State()
    for term, fact in enumerate(facts, 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return models_of(state)


def test_before_anything_is_trained_there_is_none() -> None:
    assert known(started()) == []


def test_each_round_has_its_candidate_and_the_promoted_one_writes() -> None:
    second, first = known(*TWO_ROUNDS)
    assert (first.name, first.verdict, first.val_bpb) == ("python/1", "PROMOTE", 2.1)
    assert (second.name, second.artifact, second.verdict) == ("python/2", SECOND, "HOLD")
    assert (second.share, second.tokens, second.loss) == (0, 1800, 2.5)
    (alone,) = known(*TWO_ROUNDS[:4])
    assert (alone.share, alone.to_plain()["writes"]) == (0.1, True), "its canary"


def test_of_those_that_write_the_newest_is_promoted() -> None:
    (alone,) = known(*TWO_ROUNDS[:4])
    assert (alone.is_promoted, alone.to_plain()["promoted"]) == (True, True)
    assert [each.is_promoted for each in known(*TWO_ROUNDS)] == [False, False]
    named = replace(BEGUN, generator={"name": "org/writer", "artifact": OTHERS})
    assert [each.name for each in known(named, *TWO_ROUNDS[1:]) if each.is_promoted] == [
        "org/writer"
    ]


@pytest.mark.parametrize("part", ["templates: []", "synthetic_share: 0"])
def test_where_no_text_is_to_be_generated_a_good_verdict_promotes_and_a_later_one_replaces(
    part: str,
) -> None:
    rounds = TWO_ROUNDS[1:]
    assert promoted_model(known(silent(part), *rounds[:1])) is None
    second, first = known(silent(part), *rounds)
    assert (first.is_promoted, second.is_promoted) == (True, False), "round 2 promoted nobody"
    better = (made(SECOND, FIRST, 2), *said(SECOND, "PROMOTE", 2))
    second, first = known(silent(part), *rounds[:3], *better)
    assert (first.is_promoted, second.is_promoted) == (False, True)


def test_a_model_that_is_promoted_without_templates_writes_nothing() -> None:
    (alone,) = known(silent(), *TWO_ROUNDS[1:4])
    assert (alone.share, alone.is_promoted, alone.to_plain()["writes"]) == (0.0, True, False)


def test_the_newest_cycle_that_has_a_promoted_model_counts() -> None:
    later = trained_run(day=3)
    found = known(silent(), *TWO_ROUNDS[1:4], later, made(LAST, run=RUN))
    assert [each.name for each in found] == ["letters", "python/1"]
    promoted = promoted_model(found)
    assert promoted is not None
    assert promoted.name == "python/1"


def test_a_candidate_is_listed_once_it_is_trained_and_before_it_is_judged() -> None:
    newest, *_ = known(*TWO_ROUNDS, made(LAST, SECOND, 3))
    assert (newest.name, newest.verdict, newest.val_bpb) == ("python/3", "", None)
    assert newest.to_plain()["verdict"] is None


def test_a_generator_that_others_made_is_listed_and_writes_instead() -> None:
    named = replace(BEGUN, generator={"name": "org/writer", "artifact": OTHERS})
    found = known(named, *TWO_ROUNDS[1:])
    assert [each.name for each in found if each.share] == ["org/writer"]
    assert model_meant(found, "org/writer").artifact == OTHERS


def test_a_run_that_was_stopped_has_its_last_checkpoint_and_one_that_runs_has_none() -> None:
    begun = replace(made(LAST, run=RUN), is_final=False)
    assert known(trained_run(), begun) == []
    stopped = CycleStateSet(RUN, "stopped", "by a person", 1)
    assert [each.artifact for each in known(trained_run(), begun, stopped)] == [LAST]


def test_a_training_run_has_its_last_model_with_the_score_on_its_held_out_text() -> None:
    scored = WorkCompleted(
        RUN, 1, "evaluate", evaluation_id(LAST), NODES[0], {}, summary={"val_bpb": 1.5}
    )
    found = known(*TWO_ROUNDS, trained_run(), made(LAST, run=RUN), scored)
    assert [each.name for each in found] == ["letters", "python/2", "python/1"], "newest run first"
    assert (found[0].kind, found[0].val_bpb, found[0].verdict) == ("run", 1.5, "")


@pytest.mark.parametrize(
    ("wanted", "model"),
    [
        ("python", SECOND), ("python/1", FIRST), (f"{CYCLE[:8]}/1", FIRST), (CYCLE, SECOND),
        ("1a1a", FIRST), (SECOND, SECOND), ("letters", LAST), (RUN[:8], LAST),
    ],
)  # fmt: skip
def test_a_model_is_meant_by_its_name_its_run_and_round_or_its_id(wanted: str, model: str) -> None:
    found = known(*TWO_ROUNDS, trained_run(), made(LAST, run=RUN))
    assert model_meant(found, wanted).artifact == model


def test_what_is_not_there_or_not_clear_is_told() -> None:
    found = known(*TWO_ROUNDS)
    with pytest.raises(NotFoundError, match="there is no model python/7"):
        model_meant(found, "python/7")
    alike = known(*TWO_ROUNDS, trained_run(), made("1a1b" + "0" * 60, run=RUN))
    with pytest.raises(UsageError, match="could be any of"):
        model_meant(alike, "1a1")
