"""A figure of many documents with its interval, and by how much two models differ in it.

Owns the statistics of figures that are sums over sums: a mean, or bits per byte. Pure. With values
v, weights w, the figure r = sum v / sum w, and the documents of a cluster, which err together,

    variance = G / (G - 1) * sum over clusters of (sum of (v - r w) in the cluster)^2 / (sum w)^2

(Cochran, Sampling Techniques, 1977, sections 6.3 and 9A). The interval is that of Student's t, with
one degree of freedom less than there would be clusters if all were equally large. Values that are
all 0 or 1 are answers, of which `accuracy` knows more.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.base.student_t import t_upper_quantile
from jupiterd.cycle.questions.accuracy import Accuracy, Interval, Z, compared

_TAIL = 0.025


@dataclass(frozen=True)
class Estimate:
    """A figure, and where the true one lies with 95 % certainty; None: nobody knows."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Shares:
    """What each document adds to a figure: sum of values / sum of weights."""

    values: Sequence[float]
    weights: Sequence[float]
    clusters: Sequence[str] = ()
    """Of each document; none given: each stands alone."""

    @property
    def figure(self) -> float:
        """Return the figure; infinite of no weight."""
        weight = math.fsum(self.weights)
        return math.fsum(self.values) / weight if weight else math.inf

    @property
    def are_answers(self) -> bool:
        """Say whether each document is right or wrong, and counts once."""
        return set(self.values) <= {0.0, 1.0} and set(self.weights) == {1.0}


def estimated(shares: Shares) -> Estimate:
    """Return the figure with its interval."""
    if shares.are_answers and not shares.clusters:
        found = Accuracy(round(sum(shares.values)), len(shares.values))
        return Estimate(found.share, found.interval)
    return _estimated(shares)


def difference(first: Shares, second: Shares) -> Estimate:
    """Return the first model's figure less the second's, over the same documents.

    Raises:
        ValueError: they aren't the same.
    """
    if list(first.weights) != list(second.weights):
        raise ValueError("figures of different documents can't be compared")
    if first.are_answers and second.are_answers and not first.clusters:
        pair = compared([*map(bool, first.values)], [*map(bool, second.values)])
        return Estimate(pair.difference, pair.interval)
    gaps = [mine - theirs for mine, theirs in zip(first.values, second.values, strict=True)]
    return _estimated(Shares(gaps, first.weights, first.clusters))


def unpaired(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of figures of which nobody kept the documents: its interval is wide."""
    value = first.value - second.value
    if first.interval is None or second.interval is None:
        return Estimate(value, None)
    half = math.hypot(_half(first.interval), _half(second.interval))
    return Estimate(value, Interval(value - half, value + half))


def with_error(value: float, standard_error: float | None) -> Estimate:
    """Return a figure of which only a standard error is known."""
    if standard_error is None or not math.isfinite(standard_error):
        return Estimate(value, None)
    half = Z * standard_error
    return Estimate(value, Interval(value - half, value + half))


def _half(interval: Interval) -> float:
    return (interval.high - interval.low) / 2


def _estimated(shares: Shares) -> Estimate:
    figure, weight = shares.figure, math.fsum(shares.weights)
    errors: defaultdict[str, float] = defaultdict(float)
    sizes: defaultdict[str, float] = defaultdict(float)
    names = shares.clusters or [*map(str, range(len(shares.values)))]
    for name, value, share in zip(names, shares.values, shares.weights, strict=True):
        errors[name] += value - figure * share
        sizes[name] += share
    count = len(errors)
    if count < 2 or not math.isfinite(figure):
        return Estimate(figure, None)
    spread = math.sqrt(count / (count - 1) * math.fsum(e * e for e in errors.values())) / weight
    effective = weight**2 / math.fsum(size * size for size in sizes.values())
    half = t_upper_quantile(_TAIL, max(1.0, effective - 1)) * spread
    return Estimate(figure, Interval(figure - half, figure + half))
