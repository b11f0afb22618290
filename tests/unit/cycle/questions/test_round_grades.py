"""How many of the domain's own questions a round asks, and what is told of them."""

import math

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.questions.accuracy import Accuracy
from jupiterd.cycle.questions.question_file import DomainQuestion
from jupiterd.cycle.questions.round_grades import (
    ASKED,
    MOST_ASKED,
    MOST_CHARS,
    RIGHT,
    asked_in_round,
    grade_counts,
    grades_in,
    grades_text,
)
from jupiterd.cycle.rounds.phase_summary import summarise

NEW, OLD = "a" * 64, "b" * 64


def asking(count: int, size: int = 10, choices: tuple[str, ...] = ()) -> list[DomainQuestion]:
    return [
        DomainQuestion(f"{n:05}".ljust(size, "?"), choices[:1] or ("yes",), choices)
        for n in range(count)
    ]


def test_a_round_asks_some_of_all_parts_of_the_file_and_few_ones_all() -> None:
    assert asked_in_round(asking(7)) == asking(7)
    many = asking(MOST_ASKED * 10)
    found = asked_in_round(many)
    assert (len(found), found[0], found[-1]) == (MOST_ASKED, many[0], many[-10])
    assert found == asked_in_round(many), "every round asks the same"


def test_what_is_read_is_bounded_and_one_is_always_asked() -> None:
    found = asked_in_round(asking(50, 10_000, ("yes", "no")))
    assert len(found) == MOST_CHARS // (2 * 10_000 + 5)
    assert len(asked_in_round(asking(3, MOST_CHARS))) == 1


@pytest.mark.parametrize("asked", [math.nan, math.inf, -1.0, 0.0])
def test_counts_that_are_no_number_of_questions_are_no_grades(asked: float) -> None:
    assert grades_in({ASKED: asked, f"{RIGHT}:{NEW}": 0.0}) == {}
    assert grades_in({ASKED: 3.0, f"{RIGHT}:{NEW}": math.nan}) == {}


def test_grades_come_back_from_the_counts_that_carry_them() -> None:
    counts = grade_counts(20, {NEW: 14, OLD: 9}, NEW)
    assert grades_in({**counts, "documents": 3}) == {NEW: Accuracy(14, 20), OLD: Accuracy(9, 20)}
    assert grade_counts(20, {}, NEW) == grades_in({}) == {}
    assert grades_in({"own_questions": 3, f"own_right:{NEW}": 4}) == {}, "nobody is that good"


def test_people_are_told_of_each_model_once_with_its_interval() -> None:
    grades = {NEW: Accuracy(14, 20), OLD: Accuracy(9, 20)}
    roles = [("the candidate", NEW), ("the last student", OLD), ("the model that was brought", OLD)]
    assert grades_text(grades, roles) == (
        "Your own questions: the candidate 14 of 20 right (95 %: 48 to 85 %); "
        "the last student 9 of 20 right (95 %: 26 to 66 %)."
    )
    assert grades_text({}, roles) == ""


def test_the_phase_tells_of_the_candidate() -> None:
    counts = {"documents": 4.0, "scores": 8.0, "texts": 30.0, **grade_counts(20, {NEW: 14}, NEW)}
    _, _, detail = summarise(Phase.EVALUATE, counts)
    assert detail.endswith("under candidate and incumbent; your own questions: 14 of 20 right")
