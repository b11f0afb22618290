"""Predictions that were wrong correct the next ones, and no odd run does so for good."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.planning.prediction_error import LEAST, MOST, NEWEST, TOLERANCE, correction

RATES = st.floats(min_value=1e-3, max_value=1e9)


@pytest.mark.parametrize("measured", [100.0, 84.0, 124.0])
def test_what_was_near_enough_is_left_as_it_is(measured: float) -> None:
    assert correction([(100.0, measured)]) == 1.0


def test_what_was_further_off_is_corrected_by_just_that() -> None:
    assert correction([(100.0, 50.0)]) == 0.5
    assert correction([(100.0, 130.0)]) == 1.3


def test_nothing_measured_corrects_nothing() -> None:
    assert correction([]) == 1.0
    assert correction([(0.0, 5.0), (5.0, 0.0), (5.0, math.nan), (math.inf, 5.0)]) == 1.0


def test_only_the_newest_count_and_of_them_the_middle_one() -> None:
    old = [(100.0, 10.0)] * 20
    assert correction([*old, *[(100.0, 100.0)] * NEWEST]) == 1.0
    assert correction([(100.0, 50.0), (100.0, 5000.0), (100.0, 55.0)]) == pytest.approx(0.55)


@given(RATES, RATES)
def test_the_corrected_prediction_is_near_enough_within_the_bounds(
    predicted: float, measured: float
) -> None:
    factor = correction([(predicted, measured)])
    assert LEAST <= factor <= MOST
    if LEAST < factor < MOST:
        assert abs(predicted * factor - measured) <= TOLERANCE * measured * (1 + 1e-9)
