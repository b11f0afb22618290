"""The shipped gate among candidates whose truth is known; `make bench-cycle` draws more."""

from random import Random

from tests.bench.cycle.drawn_candidates import HeldOut, null_cycles, promotions

SMALL = HeldOut((6, 5, 4, 3, *(2,) * 12, *(1,) * 10))


def test_null_cycles_of_twenty_rounds_are_hardly_ever_fooled_and_naive_ones_mostly():
    found = null_cycles(Random(20), SMALL, cycles=150)
    assert found.gate / found.cycles <= 0.05
    assert found.no_ledger / found.cycles > 0.4
    assert found.naive >= found.no_ledger


def test_a_true_gain_is_promoted():
    text = HeldOut((1,) * 400, cluster_share=0.0)
    assert promotions(Random(21), text, 0.015, candidates=200) >= 190


def test_planted_candidates_that_differ_by_chance_alone_are_promoted_as_seldom_as_was_said() -> (
    None
):
    look_may_spend = 0.0304 / 2
    assert promotions(Random(22), SMALL, 0.0, candidates=400) <= 400 * look_may_spend


def test_a_planted_candidate_that_is_the_same_model_is_never_promoted() -> None:
    text = HeldOut(SMALL.cluster_sizes, paired_sd=0.0)
    assert promotions(Random(23), text, 0.0, candidates=20) == 0
