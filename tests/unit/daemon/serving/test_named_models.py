"""Which model a client means by a name."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.serving.named_models import named_model, served_model, served_names
from jupiterd.daemon.serving.promotion_follower import promoted_in
from jupiterd.errors import ModelNotServedError, NotFoundError, UsageError
from jupiterd.ids import CycleId
from tests.support.cluster.building import NODES
from tests.unit.daemon.catalog.test_model_catalog import (
    BEGUN,
    FIRST,
    LAST,
    OTHERS,
    RUN,
    SECOND,
    TWO_ROUNDS,
    made,
    said,
    silent,
    trained_run,
)

PROMOTED = (BEGUN, made(FIRST), *said(FIRST, "PROMOTE"), made(SECOND, FIRST, 2))
"""Its first student writes, and the second isn't judged yet."""

TUNING = {"start_from": OTHERS, "recipe": "tuning"}


def state_of(*facts: Fact) -> State:
    state = State()
    for term, fact in enumerate(facts, 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return state


def test_promoted_is_the_student_that_writes_whatever_was_trained_later():
    found = served_model(state_of(*PROMOTED), "promoted")
    assert (found.name, found.artifact) == ("promoted", FIRST)


def test_a_student_that_went_again_is_promoted_no_more():
    with pytest.raises(ModelNotServedError, match="no model is promoted"):
        served_model(state_of(*TWO_ROUNDS), "promoted")


@pytest.mark.parametrize("part", ["templates: []", "synthetic_share: 0"])
def test_promoted_is_what_the_cycle_began_with_once_all_students_were_rolled_back(part: str):
    begun = replace(silent(part), settings=TUNING)
    promoted = (begun, *PROMOTED[1:])
    assert promoted_in(state_of(*promoted)) == FIRST
    state = state_of(*promoted, StudentSteered(BEGUN.cycle, 1, FIRST, is_promoted=False, edit=1))
    assert served_model(state, "promoted").artifact == promoted_in(state) == OTHERS
    assert served_names(state)[:2] == ["promoted", "base"]
    assert named_model(state, "promoted/base").artifact == OTHERS
    again = StudentSteered(BEGUN.cycle, 1, FIRST, is_promoted=True, edit=2)
    assert promoted_in(state_of(*promoted, again)) == FIRST


@pytest.mark.parametrize("part", ["templates: []", "synthetic_share: 0"])
def test_promoted_is_the_student_of_the_good_verdict_where_nothing_is_generated(part: str):
    state = state_of(silent(part), *TWO_ROUNDS[1:])
    assert served_model(state, "promoted").artifact == promoted_in(state) == FIRST
    assert served_names(state)[0] == "promoted"


def test_rounds_are_called_by_their_names():
    found = served_model(state_of(*TWO_ROUNDS), "python/2")
    assert (found.name, found.artifact) == ("python/2", SECOND)


def test_base_is_what_the_cycle_of_the_promoted_model_began_with():
    begun = replace(BEGUN, settings=TUNING)
    state = state_of(begun, *PROMOTED[1:])
    assert served_model(state, "base").artifact == OTHERS
    assert served_names(state) == ["promoted", "base", "python/2", "python/1"]


def test_a_promoted_model_from_random_weights_has_no_base_and_others_are_named():
    run = replace(trained_run(), settings=TUNING)
    state = state_of(*PROMOTED, run, made(LAST, run=RUN))
    line = "python/1, which is promoted, has no base: its training began with random weights"
    for name in ("base", "promoted/base"):
        with pytest.raises(ModelNotServedError) as caught:
            served_model(state, name)
        assert (caught.value.message, "such as letters/base:" in caught.value.hint) == (line, True)
    assert served_model(state, "letters/base").artifact == OTHERS


def test_where_no_training_began_with_a_model_another_round_is_named():
    with pytest.raises(ModelNotServedError, match="python/2 has no base") as caught:
        served_model(state_of(*TWO_ROUNDS), "python/2/base")
    assert "such as python/1:" in caught.value.hint


def test_weights_that_were_trained_here_are_called_as_there():
    tuned = replace(trained_run(day=3), settings={"start_from": FIRST, "recipe": "tuning"})
    state = state_of(*TWO_ROUNDS, tuned, made(LAST, run=RUN))
    assert named_model(state, "letters/base").name == "python/1"


def test_without_weights_that_were_brought_there_is_no_base():
    with pytest.raises(ModelNotServedError, match="has begun with weights") as caught:
        served_model(state_of(*TWO_ROUNDS), "base")
    assert "--init FOLDER" in caught.value.hint
    assert served_names(state_of(*PROMOTED)) == ["promoted", "python/2", "python/1"]


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ((), "there is no model yet"),
        ((BEGUN,), "there is no model yet"),
        ((BEGUN, made(FIRST)), "no model is promoted yet"),
    ],
)
def test_before_any_promotion_the_error_says_what_to_do(facts: tuple[Fact, ...], line: str):
    with pytest.raises(ModelNotServedError, match=line) as caught:
        served_model(state_of(*facts), "promoted")
    assert "jupiterctl" in caught.value.hint


def test_an_unknown_name_has_no_model():
    with pytest.raises(ModelNotServedError, match="there is no model nobody"):
        served_model(state_of(*TWO_ROUNDS), "nobody")


def test_after_training_alone_the_error_names_the_newest_run():
    older, newer = trained_run("first_try", 1), made(FIRST, run=RUN)
    with pytest.raises(ModelNotServedError, match="no model is promoted yet") as caught:
        served_model(state_of(older, newer), "promoted")
    assert caught.value.hint.startswith("name one, such as first_try; jupiterctl model list")
    assert "model promote" not in caught.value.hint  # a run has no verdict to overrule


def test_without_any_model_the_error_says_what_to_do_first():
    with pytest.raises(ModelNotServedError) as caught:
        served_model(state_of(), "promoted")
    assert "jupiterctl cycle start --domain NAME" in caught.value.hint
    assert "jupiterctl model chat FOLDER" in caught.value.hint


def test_a_run_that_was_given_a_model_has_it_as_its_base():
    run = replace(trained_run(), settings=TUNING)
    state = state_of(run, made(FIRST, run=RUN))
    assert served_model(state, "letters/base").artifact == OTHERS
    assert served_model(state, "base").artifact == OTHERS
    assert served_names(state) == ["base", "letters"]


def test_a_run_from_random_weights_has_no_base_even_beside_a_cycle_that_has_one():
    cycle = replace(BEGUN, settings=TUNING)
    state = state_of(cycle, *PROMOTED[1:], trained_run(), made(LAST, run=RUN))
    with pytest.raises(ModelNotServedError, match="letters has no base") as caught:
        served_model(state, "letters/base")
    assert "jupiterctl model list" in caught.value.hint
    assert served_model(state, "python/2/base").artifact == OTHERS
    assert served_model(state, "promoted/base").artifact == OTHERS


def test_weights_that_were_brought_are_found_by_their_id_and_by_their_name():
    run = replace(trained_run(), settings=TUNING)
    state = state_of(run, made(FIRST, run=RUN))
    for name in (OTHERS, OTHERS[:8], run.model):
        found = named_model(state, name)
        assert (found.artifact, found.kind) == (OTHERS, "base")
    with pytest.raises(NotFoundError, match="there is no model nobody"):
        named_model(state, "nobody")


def test_a_name_of_two_weights_that_were_brought_asks_for_the_id():
    one = replace(trained_run("one", 1), settings=TUNING)
    two = replace(
        trained_run("two", 2), cycle=CycleId("2" * 32), settings=TUNING | {"start_from": FIRST}
    )
    state = state_of(one, two)
    with pytest.raises(UsageError, match="could be any of"):
        named_model(state, one.model)
    assert named_model(state, FIRST).artifact == FIRST


def test_a_model_of_the_cluster_is_meant_before_weights_that_were_brought():
    run = replace(trained_run(), settings=TUNING, model="python/1")
    state = state_of(*TWO_ROUNDS, run)
    assert named_model(state, "python/1").artifact == FIRST
