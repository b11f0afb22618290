"""Which model the next candidate must beat."""

from dataclasses import replace

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.facts.phase_facts import PhaseRedone
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.gate_history import best_student, judged, looks_before
from jupiterd.daemon.catalog.phase_summary import own_work
from jupiterd.ids import ArtifactId
from tests.unit.daemon.queries.cycle.test_cycle_document import (
    CYCLE,
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
    assert best_student(folded(*TRAINED)) == ""
    assert best_student(folded(*second_round("HOLD", "HOLD", better=False))) == ""


def test_a_promoted_student_stays_the_one_to_beat_while_others_are_held() -> None:
    assert best_student(folded(*second_round("PROMOTE", "HOLD", better=False))) == "k2"


def test_a_student_that_was_better_and_held_for_another_reason_is_the_one_to_beat() -> None:
    assert best_student(folded(*second_round("PROMOTE", "HOLD", better=True))) == "m2"


def test_a_promotion_of_a_time_before_the_questions_counts_too() -> None:
    assert best_student(folded(*TRAINED, verdict("PROMOTE"), committed("PROMOTE"))) == "k2"


def test_the_verdict_that_saw_the_vault_is_the_one_that_counts() -> None:
    first = gate_work(1, "k2", better=True)
    second = gate_work(1, "k2", better=True, place=1)
    assert judged(folded(*TRAINED, first), 1, "k2") == first
    assert judged(folded(*TRAINED, first, second), 1, "k2") == second
    assert judged(folded(*TRAINED), 1, "k2") is None


def rolled_back(student: str, after: int, edit: int = 1) -> StudentSteered:
    return StudentSteered(CYCLE, after, ArtifactId(student), is_promoted=False, edit=edit)


def test_whom_people_rolled_back_is_not_the_one_to_beat_and_the_one_before_it_is() -> None:
    both = second_round("PROMOTE", "PROMOTE", better=True)
    assert best_student(folded(*both, rolled_back("m2", 2))) == "k2"
    assert best_student(folded(*both, rolled_back("m2", 2), rolled_back("k2", 2))) == ""
    again = replace(rolled_back("m2", 2, edit=2), is_promoted=True)
    assert best_student(folded(*both, rolled_back("m2", 2), again)) == "m2"


def test_whom_a_candidate_must_beat_does_not_change_once_it_is_being_trained() -> None:
    first = (*TRAINED, gate_work(1, "k2", better=True), verdict("PROMOTE"), committed("PROMOTE"))
    trained = checkpoint("m2", 200, "k2", number=2, final=True)
    assert best_student(folded(*first, rolled_back("k2", 1), trained)) == ""
    late = (*first, trained, rolled_back("k2", 1))
    assert best_student(folded(*late)) == "k2"
    over = (gate_work(2, "m2", better=False), verdict("HOLD", number=2, candidate="m2"))
    closed = committed("HOLD", number=2, parent="m2")
    assert best_student(folded(*late, *over, closed)) == "", "from the next round on"


def redone(attempt: int, *phases: str) -> PhaseRedone:
    return PhaseRedone(CYCLE, 1, phases[0], phases, attempt)


def again(attempt: int, candidate: str = "k2") -> WorkCompleted:
    """The gate's first decision on a candidate, of one attempt."""
    first = gate_work(1, candidate, better=True)
    return replace(first, item=f"{first.item}~{attempt}") if attempt else first


def test_a_look_is_counted_once_however_often_its_round_is_asked_about() -> None:
    cycle = folded(*TRAINED, again(0), verdict("HOLD"), committed("HOLD"))
    assert looks_before(cycle, 1, "k2") == 0
    assert looks_before(cycle, 2, "m2") == 1
    older = folded(*TRAINED, verdict("HOLD"), committed("HOLD"))
    assert looks_before(older, 2, "m2") == 1


def test_a_look_stays_spent_where_the_gate_decides_anew() -> None:
    before = (*TRAINED, again(0), redone(1, "gate"))
    assert looks_before(folded(*before), 1, "k2") == 1
    assert looks_before(folded(*before, again(1)), 1, "k2") == 1, "its own look isn't one before"
    twice = (*before, again(1), redone(2, "evaluate", "gate"), again(2))
    assert looks_before(folded(*twice), 1, "k2") == 2
    closed = folded(*twice, verdict("HOLD"), committed("HOLD"))
    assert looks_before(closed, 2, "m2") == 3


def test_a_look_at_a_candidate_whose_line_counts_no_more_stays_spent() -> None:
    assert looks_before(folded(*TRAINED, again(0, "x1")), 1, "k2") == 1
    also_judged = folded(*TRAINED, again(0, "x1"), verdict("HOLD", candidate="x1"))
    assert looks_before(also_judged, 1, "k2") == 1


def test_a_student_that_a_judge_promoted_is_not_the_one_to_beat() -> None:
    before = (*TRAINED, gate_work(1, "k2", better=True), verdict("HOLD"), committed("HOLD"))
    tied = (
        checkpoint("m2", 200, "k2", number=2, final=True),
        gate_work(2, "m2", better=False, place=2),
        verdict("PROMOTE", number=2, candidate="m2"),
        committed("PROMOTE", number=2, parent="m2"),
    )
    assert best_student(folded(*before, *tied)) == "k2"


def test_of_three_verdicts_the_one_that_was_told_most_counts() -> None:
    facts = [gate_work(1, "k2", better=False, place=place) for place in (0, 1, 2)]
    assert judged(folded(*TRAINED, *facts), 1, "k2") == facts[1]
    assert judged(folded(*TRAINED, facts[0], facts[2]), 1, "k2") == facts[2]
    for order in (facts, facts[::-1]):
        assert own_work(Phase.GATE, order) == [facts[1]]
    asked = replace(facts[0], item="r1/gate/judge/ask/k2")
    assert own_work(Phase.GATE, [facts[0], asked]) == [facts[0]]
