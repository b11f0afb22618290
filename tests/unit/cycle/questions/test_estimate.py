"""Figures of documents, and what two models differ by in them."""

import math
import random

import pytest

from jupiterd.cycle.questions.accuracy import accuracy
from jupiterd.cycle.questions.estimate import (
    Shares,
    difference,
    estimated,
    unpaired,
    with_error,
)

ONES = [1.0] * 6


def test_a_mean_has_the_interval_of_students_t():
    found = estimated(Shares([1.0, 2.0, 3.0, 4.0], [1.0] * 4))
    assert found.value == 2.5
    assert found.interval is not None
    # 2.5 ± 3.182 * 1.2910 / 2, from a table
    assert (found.interval.low, found.interval.high) == pytest.approx((0.4457, 4.5543), abs=1e-3)


def test_right_and_wrong_answers_have_the_interval_of_a_share():
    found = estimated(Shares([1.0, 0.0, 1.0, 1.0, 1.0, 1.0], ONES))
    assert found.interval == accuracy([True, False, True, True, True, True]).interval


def test_bits_per_byte_are_pooled_over_all_bytes():
    found = estimated(Shares([10.0, 30.0], [10.0, 60.0]))
    assert found.value == pytest.approx(40 / 70)


def test_documents_that_err_together_leave_more_doubt():
    rng = random.Random(5)
    shifts = [shift for shift in (rng.gauss(0, 1) for _ in range(10)) for _ in range(8)]
    values = [shift + rng.gauss(0, 0.1) for shift in shifts]
    alone = estimated(Shares(values, [1.0] * 80)).interval
    together = estimated(Shares(values, [1.0] * 80, [str(n // 8) for n in range(80)])).interval
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_paired_documents_show_what_two_separate_figures_do_not():
    rng = random.Random(3)
    hard = [rng.uniform(100, 900) for _ in range(40)]
    first = Shares([bits - 5 + rng.gauss(0, 1) for bits in hard], [400.0] * 40)
    second = Shares(hard, [400.0] * 40)
    paired = difference(first, second)
    apart = unpaired(estimated(first), estimated(second))
    assert paired.value == pytest.approx(apart.value)
    assert paired.interval is not None
    assert apart.interval is not None
    assert paired.interval.high < 0 < apart.interval.high


def test_two_models_answers_are_compared_as_answers():
    found = difference(Shares([1.0] * 6, ONES), Shares([0.0] * 6, ONES))
    assert found.value == 1.0
    assert found.interval is not None
    assert 0 < found.interval.low < found.interval.high <= 1


def test_figures_of_other_documents_are_not_compared():
    with pytest.raises(ValueError, match="different documents"):
        difference(Shares([1.0], [2.0]), Shares([1.0], [3.0]))


def test_what_nobody_can_know_has_no_interval():
    assert estimated(Shares([2.5], [1.0])).interval is None
    assert estimated(Shares([math.inf, 1.0], [1.0, 1.0])).interval is None
    assert with_error(0.5, None).interval is None
    assert unpaired(with_error(0.5, None), with_error(0.4, 0.1)).interval is None
    assert estimated(Shares([], [])).value == math.inf


def test_a_standard_error_alone_makes_an_interval():
    found = with_error(0.5, 0.1)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.304, abs=1e-3)
