"""Student's t distribution: its cumulative probability and its quantiles.

Owns the incomplete beta function and what follows from it. Doesn't know tests or samples.
The identities are textbook ones (Abramowitz & Stegun 26.5.8 and 26.7.1).
"""

import math
from functools import lru_cache

_TINY = 1e-300
_PRECISION = 3e-16
_MAX_TERMS = 10_000


def t_cdf(t: float, degrees: float) -> float:
    """Return P(T <= t) for `degrees` of freedom (> 0, not necessarily whole)."""
    if degrees <= 0 or math.isnan(t):
        raise ValueError("a t distribution needs a number and degrees of freedom above 0")
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    tail = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_upper_quantile(tail: float, degrees: float) -> float:
    """Return the t exceeded with probability `tail` (0 < tail < 0.5), to about 12 digits."""
    if not 0 < tail < 0.5:
        raise ValueError("the tail must be between 0 and 0.5")
    low, high = 0.0, 1.0
    # The lower tail at -t is exact where 1 - cdf(t) would lose its digits.
    while t_cdf(-high, degrees) > tail:
        low, high = high, high * 2
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_cdf(-middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) for 0 <= x <= 1."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    log_front = a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b)
    # The fraction converges fast on the near side of the mean; symmetry serves the other.
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _beta_fraction(b, a, 1 - x) / b


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of I_x(a, b) from the front (modified Lentz)."""
    upper, lower = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            lower = 1 / _away_from_zero(1 + term * lower)
            upper = _away_from_zero(1 + term / upper)
            change = upper * lower
            value *= change
        if abs(change - 1) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
