import logging

import pytest

from jupiterd.net.refusals import MAX_NAMED_CALLERS, Refusals


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(vars(record)["kind"], vars(record)["caller"]) for record in caplog.records]


def test_each_refusal_counts_and_the_first_of_a_kind_and_caller_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    news = [refusals.count(kind, who, "why") for kind in ("b", "a") for who in ("x", "y", "x")]
    assert news == [True, True, False, True, True, False]
    assert refusals.to_plain() == {"a": 3, "b": 3}
    assert lines(caplog) == [("b", "x"), ("b", "y"), ("a", "x"), ("a", "y")]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_callers_without_end_fill_neither_the_log_nor_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    for number in range(10 * MAX_NAMED_CALLERS):
        refusals.count("a", str(number), "why")
    assert refusals.to_plain() == {"a": 10 * MAX_NAMED_CALLERS}
    assert len(caplog.records) == MAX_NAMED_CALLERS + 1
    assert lines(caplog)[-1] == ("a", "others")
    assert len(refusals._named["a"]) == MAX_NAMED_CALLERS + 1
