"""Whoever calls too often isn't answered, and takes nothing from the others."""

from jupiterd.cluster.values.rate_limit import Rate, RateLimit


def limit(together: float = 100.0, max_callers: int = 8) -> RateLimit[str]:
    return RateLimit(Rate(2.0, 5.0), Rate(together, together), now=0.0, max_callers=max_callers)


def test_a_burst_is_answered_and_then_as_many_as_the_rate_allows() -> None:
    calls = limit()
    assert [calls.allows(0.0, "a") for _ in range(7)] == [True] * 5 + [False] * 2
    assert calls.allows(0.5, "a")
    assert not calls.allows(0.5, "a")
    assert calls.refused == 3


def test_a_quiet_caller_saves_up_no_more_than_a_burst() -> None:
    calls = limit()
    assert sum(calls.allows(1000.0, "a") for _ in range(20)) == 5


def test_one_that_floods_takes_nothing_from_another() -> None:
    calls = limit()
    for _ in range(1000):
        calls.allows(0.0, "flood")
    assert calls.allows(0.0, "b")


def test_all_together_are_limited_however_many_names_they_use() -> None:
    calls = limit(together=10.0)
    assert sum(calls.allows(0.0, f"stranger {number}") for number in range(1000)) == 10


def test_who_called_longest_ago_is_forgotten() -> None:
    calls = limit(max_callers=3)
    for _ in range(5):
        calls.allows(0.0, "a")
    for name in "bcd":
        calls.allows(0.0, name)
    assert len(calls._of) == 3
    assert calls.allows(0.0, "a")
