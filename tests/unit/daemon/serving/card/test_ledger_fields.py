"""What whoever talks to a model is told of it."""

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.serving.card.ledger_fields import ledger_fields
from tests.support.cluster.building import CYCLE, NODES
from tests.unit.daemon.catalog.test_model_catalog import (
    BEGUN,
    FIRST,
    OTHERS,
    RUN,
    TWO_ROUNDS,
    made,
    said,
    trained_run,
)


def state_of(*facts) -> State:
    state = State()
    for term, fact in enumerate(facts, 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return state


def test_a_student_is_told_with_its_verdict_its_training_and_its_text():
    told = ledger_fields(state_of(*TWO_ROUNDS), FIRST)
    sources = told.pop("trained_on")
    licences = told.pop("licence")
    assert told == {
        "name": "python/1",
        "kind": "candidate",
        "verdict": "PROMOTE",
        "reason": "why",
        "bits_per_byte": 2.1,
        "step": 50,
        "tokens": 900,
        "cycle": CYCLE,
        "round": 1,
        "domain": "python",
    }
    assert sources
    assert len(set(licences)) == len(licences) > 0


def test_what_is_not_known_is_left_out():
    state = state_of(BEGUN, made(FIRST))
    assert "verdict" not in ledger_fields(state, FIRST)
    assert "bits_per_byte" not in ledger_fields(state, FIRST)
    assert ledger_fields(state, OTHERS) == {"kind": "base"}


def test_a_run_has_no_domain():
    told = ledger_fields(state_of(trained_run(), made(FIRST, run=RUN)), FIRST)
    assert (told["name"], told["kind"]) == ("letters", "run")
    assert "domain" not in told


def test_no_path_is_among_it():
    told = ledger_fields(state_of(BEGUN, made(FIRST), *said(FIRST, "HOLD")), FIRST)
    assert not any("/" in name for name in told["trained_on"])
