import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.student_t import incomplete_beta, t_cdf, t_upper_quantile


@pytest.mark.parametrize(
    ("tail", "degrees", "expected"),
    [  # the printed tables of every textbook
        (0.05, 1, 6.3138),
        (0.025, 2, 4.3027),
        (0.01, 5, 3.3649),
        (0.025, 10, 2.2281),
        (0.005, 20, 2.8453),
        (0.05, 30, 1.6973),
        (0.025, 120, 1.9799),
        (0.025, 1e7, 1.95996),
        (0.0005, 8, 5.0413),
    ],
)
def test_quantiles_agree_with_the_printed_tables(tail, degrees, expected):
    assert t_upper_quantile(tail, degrees) == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize("t", [-40.0, -2.5, -0.3, 0.0, 0.7, 3.0, 200.0])
def test_one_and_two_degrees_agree_with_their_closed_forms(t):
    cauchy = 0.5 + math.atan(t) / math.pi
    two = 0.5 + t / (2 * math.sqrt(2 + t * t))
    assert t_cdf(t, 1) == pytest.approx(cauchy, rel=1e-9, abs=1e-13)
    assert t_cdf(t, 2) == pytest.approx(two, rel=1e-9, abs=1e-13)


@given(st.floats(1e-6, 0.49), st.floats(1, 500))
def test_a_quantile_leads_back_to_its_tail(tail, degrees):
    assert t_cdf(-t_upper_quantile(tail, degrees), degrees) == pytest.approx(tail, rel=1e-9)


def test_the_distribution_is_symmetric_and_ends_at_its_ends():
    assert t_cdf(1.3, 7) + t_cdf(-1.3, 7) == pytest.approx(1, abs=1e-15)
    assert t_cdf(math.inf, 3) == 1
    assert t_cdf(-math.inf, 3) == 0
    assert incomplete_beta(2, 3, 0) == 0
    assert incomplete_beta(2, 3, 1) == 1
    assert incomplete_beta(2, 3, 0.4) == pytest.approx(0.5248)


@pytest.mark.parametrize(("t", "degrees"), [(1.0, 0), (math.nan, 3)])
def test_nonsense_is_refused(t, degrees):
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_cdf(t, degrees)


@pytest.mark.parametrize("tail", [0, 0.5, -1, 2])
def test_a_tail_that_is_none_is_refused(tail):
    with pytest.raises(ValueError, match="tail"):
        t_upper_quantile(tail, 3)
