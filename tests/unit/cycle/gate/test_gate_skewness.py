"""Few clusters with skewed errors: the gate's bounds allow for them, and old verdicts stay."""

from random import Random

import pytest

from jupiterd.cycle.gate.case import Findings, GateSettings
from jupiterd.cycle.gate.paired import measure
from jupiterd.cycle.gate.record import TEST, Material, decide_on, settings_of
from jupiterd.cycle.gate.skewness import (
    SKEW_ERRORS,
    allowance,
    careful_quantile,
    careful_t,
    sample_skewness,
    skewness_error,
)
from tests.support.cycle.gate_material import document

GIVEN = {
    "gate": {"alpha": 0.05, "margin_bpb": 0.005, "stratum_veto_bpb": 0.02},
    "holdout": {"min_documents": 12, "min_clusters": 6},
    "look": 1,
}


def test_skewness_is_that_of_the_textbook():
    assert sample_skewness([1, 2, 3, 4, 10]) == pytest.approx(1.6971, abs=1e-4)
    assert sample_skewness([1, 2, 3]) == pytest.approx(0)
    assert sample_skewness([1, 2]) == 0
    assert sample_skewness([5, 5, 5, 5]) == 0


def test_only_errors_that_reach_towards_an_end_cost_there():
    assert allowance(-1.0, 9) == 0
    assert allowance(1.0, 9) == pytest.approx(1 / 18)
    assert allowance(1.0, 36) < allowance(1.0, 9)


@pytest.mark.parametrize("given_away", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("quantile", [0.5, 2.0, 5.0])
def test_a_careful_t_is_the_inverse_of_a_careful_quantile(quantile, given_away):
    assert careful_t(careful_quantile(quantile, given_away), given_away) == pytest.approx(quantile)
    assert careful_t(-100.0, 0.1) < 0


def bounds(saved, skew_errors):
    clusters = [str(number) for number in range(len(saved))]
    return measure(saved, clusters, 0.005, 0.015, skew_errors=skew_errors)


def test_a_few_bad_clusters_make_the_lower_bound_more_careful_and_the_upper_no_less():
    seed = 5
    chance = Random(seed)
    saved = [0.05 + chance.gauss(0, 0.005) for _ in range(12)] + [-0.1]
    plain, careful = (bounds(saved, skew_errors) for skew_errors in (None, 0.0))
    assert careful.lower_bound_bpb < plain.lower_bound_bpb
    assert careful.upper_bound_bpb == plain.upper_bound_bpb
    assert careful.p > plain.p
    turned = bounds([-each for each in saved], 0.0)
    assert turned.upper_bound_bpb == pytest.approx(-careful.lower_bound_bpb)


def test_p_is_below_alpha_just_where_the_bound_is_above_the_margin():
    for seed in range(200):
        chance = Random(seed)
        saved = [0.02 - chance.gammavariate(1.0, 0.015) + 0.015 for _ in range(8)]
        found = bounds(saved, SKEW_ERRORS)
        assert (found.p < 0.015) == (found.lower_bound_bpb > 0.005), seed


def test_what_was_decided_before_is_decided_alike():
    tests = (None, "paired@2", TEST)
    asked = [settings_of({**GIVEN, "test": test}).skew_errors for test in tests]
    assert asked == [None, 0.0, SKEW_ERRORS]
    assert settings_of(GIVEN).skew_errors is None
    saved = [0.05] * 12 + [-0.1]
    scores = [document(number, each, cluster=str(number)) for number, each in enumerate(saved)]
    material = Material(scores, Findings())
    bounds_found: list[float] = []
    for test in tests:
        verdict, text = decide_on(material, {**GIVEN, "test": test})
        assert verdict.evidence is not None
        bounds_found.append(verdict.evidence.lower_bound_bpb)
        assert "skew_errors" not in text
    assert bounds_found == sorted(bounds_found, reverse=True)
    assert len(set(bounds_found)) == len(tests)
    assert GateSettings(0.05, 0.005, 0.02, 12, 6).skew_errors == SKEW_ERRORS


def test_a_skewness_is_the_less_known_the_fewer_there_are():
    assert skewness_error(6) == pytest.approx(0.8452, abs=1e-4)
    assert skewness_error(30) == pytest.approx(0.4269, abs=1e-4)
    assert skewness_error(2) == 0.0


def test_even_clusters_that_agree_cost_what_their_skewness_may_be():
    saved = [0.03, 0.04, 0.05, 0.05, 0.06, 0.07]
    sample, careful = (bounds(saved, skew_errors) for skew_errors in (0.0, SKEW_ERRORS))
    assert careful.lower_bound_bpb < sample.lower_bound_bpb
    assert careful.upper_bound_bpb > sample.upper_bound_bpb
