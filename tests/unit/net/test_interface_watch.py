"""Addresses that come and go, as readings tell."""

from collections.abc import Callable, Iterator

from jupiterd.net.interface_watch import InterfaceAddresses, InterfaceWatch, LostAddresses

HOME = ("eth0", "192.0.2.1")
MOVED = ("eth0", "192.0.2.9")
SECOND = ("eth1", "198.51.100.1")


def readings(*told: tuple[tuple[str, str], ...]) -> Callable[[], InterfaceAddresses]:
    one_by_one: Iterator[tuple[tuple[str, str], ...]] = iter(told)
    return lambda: frozenset(next(one_by_one))


def changes(*told: tuple[tuple[str, str], ...]) -> list[bool]:
    watch = InterfaceWatch(readings(*told))
    return [watch.has_changed() for _ in told[1:]]


def test_what_stays_is_no_change() -> None:
    assert changes((HOME,), (HOME,), (HOME,)) == [False, False]


def test_a_change_is_told_once_when_it_has_lasted() -> None:
    assert changes((HOME,), (MOVED,), (MOVED,), (MOVED,)) == [False, True, False]


def test_an_address_that_was_away_counts_as_a_change() -> None:
    assert changes((HOME,), (), (HOME,), (HOME,)) == [False, False, True]


def test_what_never_rests_is_not_followed() -> None:
    assert not any(changes((HOME,), (), (HOME,), (), (HOME,), ()))


def test_an_address_is_lost_when_it_is_missing_twice() -> None:
    lost = LostAddresses(readings((HOME,), (), (), (HOME,)))
    ours = [HOME[1], HOME[1]]
    assert [lost.among(ours) for _ in range(4)] == [set(), set(), {HOME[1]}, set()]


def test_an_address_that_blinks_is_not_lost() -> None:
    lost = LostAddresses(readings((SECOND,), (HOME, SECOND), (SECOND,)))
    assert not any(lost.among([HOME[1]]) for _ in range(3))


def unreadable() -> InterfaceAddresses:
    raise OSError("too many open files")


def test_a_reading_that_fails_is_no_change() -> None:
    watch = InterfaceWatch(lambda: frozenset({HOME}))
    watch._read = unreadable
    assert not watch.has_changed()


def test_a_reading_that_fails_loses_no_address() -> None:
    lost = LostAddresses(unreadable)
    assert [lost.among({HOME[1]}) for _ in range(3)] == [frozenset()] * 3
