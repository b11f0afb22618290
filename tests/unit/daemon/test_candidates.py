"""Which model the next candidate must beat."""

from dataclasses import replace

from jupiterd.cluster.cycle_state import CycleFact
from jupiterd.cluster.facts import WorkCompleted
from jupiterd.daemon.candidates import judged, last_student
from tests.unit.daemon.test_cycle_document import (
    TRAINED,
    checkpoint,
    committed,
    folded,
    verdict,
    work,
)


def gate_work(number: int, candidate: str, *, better: bool, place: int = 0) -> WorkCompleted:
    done = work("gate", number=number, summary={"better": better})
    return replace(done, item=f"r{number}/gate/{place}/{candidate}")


def second_round(first: str, said: str, *, better: bool) -> tuple[CycleFact, ...]:
    """Return two rounds of which the first's verdict is given."""
    return (
        *TRAINED,
        gate_work(1, "k2", better=first == "PROMOTE"),
        verdict(first),
        committed(first),
        checkpoint("m2", 200, "k2", number=2, final=True),
        gate_work(2, "m2", better=better),
        verdict(said, number=2, candidate="m2"),
        committed(said, number=2, parent="m2"),
    )


def test_there_is_no_student_before_one_was_shown_to_be_better() -> None:
    assert last_student(folded(*TRAINED)) == ""
    assert last_student(folded(*second_round("HOLD", "HOLD", better=False))) == ""


def test_a_promoted_student_stays_the_one_to_beat_while_others_are_held() -> None:
    assert last_student(folded(*second_round("PROMOTE", "HOLD", better=False))) == "k2"


def test_a_student_that_was_better_and_held_for_another_reason_is_the_one_to_beat() -> None:
    assert last_student(folded(*second_round("PROMOTE", "HOLD", better=True))) == "m2"


def test_a_promotion_of_a_time_before_the_questions_counts_too() -> None:
    assert last_student(folded(*TRAINED, verdict("PROMOTE"), committed("PROMOTE"))) == "k2"


def test_the_verdict_that_saw_the_vault_is_the_one_that_counts() -> None:
    first = gate_work(1, "k2", better=True)
    second = gate_work(1, "k2", better=True, place=1)
    assert judged(folded(*TRAINED, first), 1, "k2") == first
    assert judged(folded(*TRAINED, first, second), 1, "k2") == second
    assert judged(folded(*TRAINED), 1, "k2") is None
