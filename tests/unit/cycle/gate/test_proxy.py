"""Two arms of small students: what counts as shown, and how often that is wrong."""

import random

import pytest

from jupiterd.cycle.gate.proxy import ALPHA, Arm, compare
from tests.support.cycle.gate_material import students

SEED = 20_261
TRIALS = 4000


def compared(source, harm_bpb, seeds=2, spread=0.01, known_spread=0.01):
    """Return the comparison of a candidate's text, which costs so much, with the generator's."""
    drawn = [source.gauss(2.5, spread) for _ in range(2 * seeds)]
    runs = students(
        known_spread,
        candidate=[each + harm_bpb for each in drawn[:seeds]],
        incumbent=drawn[seeds:],
    )
    return compare(runs, Arm.CANDIDATE, Arm.GENERATOR)


def share_of_vetoes(harm_bpb, **changes):
    source = random.Random(SEED)
    return sum(compared(source, harm_bpb, **changes).is_worse for _ in range(TRIALS)) / TRIALS


def test_arms_are_paired_by_seed():
    runs = students(candidate=(2.0, 2.3, 9.0), incumbent=(2.1, 2.2))
    found = compare(reversed(runs), Arm.CANDIDATE, Arm.GENERATOR)
    assert found is not None
    assert (found.seeds, found.ours_bpb, found.theirs_bpb) == ((1, 2), (2.0, 2.3), (2.1, 2.2))
    assert found.gain_bpb == pytest.approx(0.0)
    assert found.lower_bound_bpb < 0 < found.upper_bound_bpb
    assert compare(runs, Arm.CANDIDATE, Arm.REAL) is None


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_text_as_good_as_the_others_is_vetoed_no_more_often_than_is_said(seeds):
    assert share_of_vetoes(0.0, seeds=seeds) <= ALPHA + 0.01


def test_so_it_is_where_less_is_known_of_the_spread_than_is_thought():
    """A spread of one and a half times what was taken for granted: two seeds notice part of it."""
    assert share_of_vetoes(0.0, spread=0.015) <= 2 * ALPHA + 0.01
    assert share_of_vetoes(0.0, spread=0.005) <= ALPHA / 2


def test_a_candidate_whose_text_harms_is_refused():
    assert share_of_vetoes(0.05) >= 0.95


def test_what_is_said_to_be_noticed_is_noticed_four_times_in_five():
    found = compared(random.Random(SEED), 0.0, seeds=2)
    assert share_of_vetoes(found.detectable_bpb) == pytest.approx(0.8, abs=0.1)
    # Students of 25m parameters, two of each text.
    known = compare(students(0.004, mix=(2.0, 2.0), real=(2.0, 2.0)), Arm.MIX, Arm.REAL)
    assert known is not None
    assert known.detectable_bpb == pytest.approx(0.01, abs=0.002)
