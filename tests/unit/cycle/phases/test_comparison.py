"""What a round promises follows what earlier verdicts measured of such a comparison."""

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.holdout.paired_spread import BROUGHT, FIRST, Comparison
from jupiterd.cycle.phases.comparison import comparison_of
from jupiterd.cycle.phases.view import item_id
from tests.support.cycle.round_walk import view

STUDENT = "5" * 64


def judged(number, error, *, beside_student):
    told = {"standard_error_bpb": error, "beside_student": beside_student}
    return {item_id(number, Phase.GATE, 0, "c" * 64): WorkResult({}, {}, told)}


def test_a_first_round_is_compared_with_counting_and_nothing_is_known_of_it():
    assert comparison_of(view()) == FIRST
    brought = comparison_of(view(base="ab" * 32))
    assert brought == BROUGHT, "a model that was brought is no counting of tokens"
    assert Comparison(**brought.to_plain()) == brought
    assert "is_brought" not in FIRST.to_plain()


def test_a_student_is_not_promised_what_was_measured_beside_counting():
    done = judged(1, 0.03, beside_student=False)
    later = view(done, round=2, looks=1, best_student=STUDENT)
    assert comparison_of(later) == Comparison(2, beside_student=True)
    held = view(done, round=2, looks=1)
    assert comparison_of(held) == Comparison(2, standard_error_bpb=0.03)


def test_the_last_of_such_verdicts_counts():
    done = judged(1, 0.03, beside_student=False) | judged(2, 0.004, beside_student=True)
    done |= judged(3, 0.005, beside_student=True)
    found = comparison_of(view(done, round=4, looks=3, best_student=STUDENT))
    assert found == Comparison(4, beside_student=True, standard_error_bpb=0.005)


@pytest.mark.parametrize("told", [{}, {"standard_error_bpb": 0.01}, {"beside_student": True}])
def test_a_verdict_of_an_older_build_says_nothing_of_it(told):
    done = {item_id(1, Phase.GATE, 0, "c" * 64): WorkResult({}, {}, told)}
    found = comparison_of(view(done, round=2, looks=1, best_student=STUDENT))
    assert found.standard_error_bpb == 0.0
